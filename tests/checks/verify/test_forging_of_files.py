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
from streamtrain.topics.rounds import RANGE_DTYPE, SLOT_DTYPE
from tests.checks.verify.forger import Forger, copied, unpacked
from tests.checks.verify.forgery_table import messages, versions
from tests.checks.verify.test_forging_on_kafka import read
from tests.checks.verify.topics_in_memory import Written
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.fitting.test_files import written as file_of

pytestmark = pytest.mark.kafka
ROWS = (900, 900)  # of each file


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


Edit = Callable[[Any, Any], None]


def edited_log(made: Written, version: int, edit: Edit, later: Callable[[Any], None]) -> Written:
    """A log's ranges and slots changed; `later` of its manifest and those behind it."""

    def log(document: Any) -> None:
        ranges = np.frombuffer(document["ranges"], RANGE_DTYPE).copy()
        slots = np.frombuffer(document["slots"], SLOT_DTYPE).copy()
        edit(ranges, slots)
        document["ranges"], document["slots"] = ranges.tobytes(), slots.tobytes()

    behind = [each for each in versions(made) if each >= version]
    return Forger(made, manifests=dict.fromkeys(behind, later), logs={version: log}).forged()


def middle(made: Written) -> int:
    """A publication whose log begins and ends within a file."""
    return versions(made)[1]


def a_row_is_claimed_twice(made: Written) -> Written:
    """By the range behind the one that trained it too, with all that counts it."""

    def edit(ranges: Any, slots: Any) -> None:
        ranges["from_offset"][0] -= 1
        for table in (ranges, slots):
            table["filtered"][0] += 1

    def later(document: Any) -> None:
        document["counts"]["filtered"] += 1

    return edited_log(made, middle(made), edit, later)


def a_gap_of_rows(made: Written) -> Written:
    """The first row of a range is left out, of all that counts it too."""

    def edit(ranges: Any, slots: Any) -> None:
        ranges["from_offset"][0] += 1
        for name, table in (("trained", ranges), ("trained", slots), ("rows", slots)):
            table[name][0] -= 1

    def later(document: Any) -> None:
        document["counts"]["trained"] -= 1
        document["rows_seen"] -= 1

    return edited_log(made, middle(made), edit, later)


def a_row_within_a_range_is_not_trained(made: Written) -> Written:
    def edit(ranges: Any, slots: Any) -> None:
        for table, name in ((ranges, "trained"), (slots, "trained"), (slots, "rows")):
            table[name][0] -= 1

    def later(document: Any) -> None:
        document["counts"]["trained"] -= 1
        document["rows_seen"] -= 1

    return edited_log(made, middle(made), edit, later)


def the_rest_of_the_first_file_is_left(made: Written) -> Written:
    """Its last row is in no range, and all that counts it says so: the next file is read all the same."""
    logs = [unpacked(message.value) for message in messages(made, "rounds")]
    found = next(log["version"] for log in logs if _ends_first(np.frombuffer(log["ranges"], RANGE_DTYPE)).any())

    def edit(ranges: Any, slots: Any) -> None:
        (index,) = np.flatnonzero(_ends_first(ranges))
        slot = int(np.searchsorted(np.cumsum(slots["range_count"]), index, side="right"))
        ranges["to_offset"][index] -= 1
        ranges["records"][index] -= ranges["records"][index] == ROWS[0]
        for table, at, name in ((ranges, index, "trained"), (slots, slot, "trained"), (slots, slot, "rows")):
            table[name][at] -= 1

    def later(document: Any) -> None:
        document["counts"]["trained"] -= 1
        document["rows_seen"] -= 1
        document["positions"]["partitions"][0][0] -= 1

    return edited_log(made, found, edit, later)


def _ends_first(ranges: Any) -> Any:
    return (ranges["partition"] == 0) & (ranges["to_offset"] == ROWS[0]) & (ranges["trained"] > 0)


def files_told(made: Written, change: Callable[[list[Any]], None], consistent: bool) -> Written:
    """The files that each manifest tells of, changed; `consistent`: what names them by their digests follows."""
    identity: dict[str, str] = {}

    def told(document: Any) -> None:
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
    first = Forger(made, manifests=dict.fromkeys(every, told)).forged()  # the identity is known then
    if not consistent:
        return first
    return Forger(first, logs=dict.fromkeys(versions(made), log)).forged()


def swap(files: list[Any]) -> None:
    files[0][1], files[1][1] = files[1][1], files[0][1]


def another(files: list[Any]) -> None:
    files[1][1] = "ab" * 32


def shorter(files: list[Any]) -> None:
    files[0][2] -= 1


FORGED: dict[str, tuple[Callable[[Written], Written], str, bool]] = {
    "a row is claimed twice": (a_row_is_claimed_twice, "expected a range from", True),
    "a gap of rows": (a_gap_of_rows, "expected a range from", True),
    "a row within a range is not trained": (a_row_within_a_range_is_not_trained, "trained of the records are", False),
    "the rest of the first file is left": (the_rest_of_the_first_file_is_left, "is left at row", True),
    "digests are swapped": (lambda made: files_told(made, swap, False), "have the digests", True),
    "a digest is another": (lambda made: files_told(made, another, False), "ab" * 32, True),
    "digests are swapped everywhere": (lambda made: files_told(made, swap, True), "records are", False),
    "a file is a row shorter": (lambda made: files_told(made, shorter, False), "up to row 900, and has 899", True),
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
    forge, told, without_files = FORGED[name]
    forged = forge(made)
    for given in (files, []) if without_files else (files,):
        assert any(told in each for each in problems(forged, given)), problems(forged, given)


def problems(made: Written, given: list[FoundFile]) -> list[str]:
    try:
        return [each for check in checked(made, given).checks for each in check.problems]
    except UserMistake as mistake:
        return [str(mistake)]
