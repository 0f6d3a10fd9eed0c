"""Forged histories of a job that was trained from files: each is named, with the files at hand and mostly without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from streamtrain.checks.given_files import GivenFiles
from streamtrain.checks.verify.report import Report
from streamtrain.checks.verify.verify import check_topics
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile, found_files
from tests.checks.verify.forger import Forger, copied, tables, unpacked
from tests.checks.verify.forgeries import messages, recounted, versions
from tests.checks.verify.test_forging_on_kafka import read
from tests.checks.verify.topics_in_memory import Written
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.fitting.test_files import written as file_of

pytestmark = pytest.mark.kafka
ROWS = (900, 900)  # of each file
LESS = {
    "ranges": {"trained": -1},
    "slots": {"trained": -1, "rows": -1},
    "manifests": {"counts.trained": -1, "rows_seen": -1},
}
Forge = Callable[[Written], Written]


@pytest.fixture(scope="module")
def history(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Written, list[FoundFile]]:
    """Two files in several publications; a row of the first cannot be used."""
    folder = tmp_path_factory.mktemp("forged")
    job = LiveJob(kafka, folder, partitions=1, publish_interval="20ms", keep=200, round_interval="20ms")
    tables = [list(rows(count, seed)) for seed, count in enumerate(ROWS)]
    tables[0][5] = {**tables[0][5], "x1": "bad"}
    paths = [file_of(folder / f"{name}.csv", table) for name, table in zip("ab", tables, strict=True)]
    for most in (400, 1100, 9999):
        run = threaded.trained(job.path, files=paths, max_rows=most)
        assert run.code == 0, run.errors
    return read(job), found_files(paths)


def checked(made: Written, files: list[FoundFile], fast: bool = False) -> Report:
    return check_topics(replace(made.topics(), files=GivenFiles(files) if files else None), fast)


def ends_first(ranges: Any) -> Any:
    """The range that ends the first file."""
    return np.flatnonzero((ranges["partition"] == 0) & (ranges["to_offset"] == ROWS[0]) & (ranges["trained"] > 0))


def recount(**more: dict[str, int]) -> Forge:
    """Changes the first range of a publication that begins and ends within a file, and all that counts it."""
    return lambda made: recounted(made, versions(made)[1], lambda ranges: [0], **{**LESS, **more})


def leave_the_rest_of_the_first_file(made: Written) -> Written:
    """Its last row is in no range, and all that counts it says so: the next file is read all the same."""
    logs = [unpacked(message.value) for message in messages(made, "rounds")]
    found = next(log["version"] for log in logs if len(ends_first(tables(log)[0])))
    of_ranges = {"to_offset": -1, "trained": -1}
    of_manifests = {"positions.partitions.0.0": -1, **LESS["manifests"]}
    return recounted(made, found, ends_first, **{**LESS, "ranges": of_ranges, "manifests": of_manifests})


def with_files(made: Written, change: Callable[[list[Any]], None], consistent: bool) -> Written:
    """Changes the files in each manifest; `consistent`: what names them by their digests follows."""
    identity: dict[str, str] = {}

    def manifest(document: Any) -> None:
        for gap in document["gaps"]:
            if "files" in gap:
                before = gap["topic_id"][1]
                change(gap["files"])
                made_of = "".join(file[1] for file in gap["files"]).encode()
                identity[before] = "files:" + sha256(made_of).hexdigest() if consistent else before
                gap["topic_id"][1] = identity[before]
        document["positions"]["topic_id"] = identity[document["positions"]["topic_id"]]

    def log(document: Any) -> None:
        for terms in document["terms"]:
            terms["topic_id"] = identity.get(terms["topic_id"], terms["topic_id"])

    found = [each.value for each in messages(made, "snapshots") if (each.key or b"").endswith(b"/m")]
    every = [unpacked(value)["version"] for value in found if value]
    first = Forger(made, manifests=dict.fromkeys(every, manifest)).forged()  # the identity is known then
    if not consistent:
        return first
    return Forger(first, logs=dict.fromkeys(versions(made), log)).forged()


def swap(files: list[Any]) -> None:
    files[0][1], files[1][1] = files[1][1], files[0][1]


def another(files: list[Any]) -> None:
    files[1][1] = "ab" * 32


def shorter(files: list[Any]) -> None:
    files[0][2] -= 1


FILTERED = {"filtered": 1}
CLAIM_TWICE = recount(ranges={"from_offset": -1, **FILTERED}, slots=FILTERED, manifests={"counts.filtered": 1})
# name -> (forge, what is said, whether without the files too)
FORGED: dict[str, tuple[Forge, str, bool]] = {
    "a row is claimed twice": (CLAIM_TWICE, "expected a range from", True),
    "a gap of rows": (recount(ranges={"from_offset": 1, "trained": -1}), "expected a range from", True),
    "a row within a range is not trained": (recount(), "trained of the records are", False),
    "the rest of the first file is left": (leave_the_rest_of_the_first_file, "is left at row", True),
    "digests are swapped": (lambda made: with_files(made, swap, False), "have the digests", True),
    "a digest is another": (lambda made: with_files(made, another, False), "ab" * 32, True),
    "digests are swapped everywhere": (lambda made: with_files(made, swap, True), "records are", False),
    "a file is a row shorter": (lambda made: with_files(made, shorter, False), "up to row 900, and has 899", True),
}


def test_a_good_history_passes(history: tuple[Written, list[FoundFile]]) -> None:
    made, files = history
    assert len(versions(made)) >= 3
    for given in (files, []):
        for fast in (False, True):
            report = checked(copied(made), given, fast)
            assert report.ok, "\n".join(report.lines())


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_is_named(history: tuple[Written, list[FoundFile]], name: str) -> None:
    made, files = history
    forge, words, without_files = FORGED[name]
    forged = forge(made)
    for given in (files, []) if without_files else (files,):
        assert any(words in each for each in problems(forged, given)), problems(forged, given)


def problems(made: Written, given: list[FoundFile]) -> list[str]:
    try:
        return [each for check in checked(made, given).checks for each in check.problems]
    except UserMistake as mistake:
        return [str(mistake)]
