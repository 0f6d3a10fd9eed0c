"""Forged histories of a job that was trained from files, and through a real Kafka, written anew with every message at
the offset it had: `streamtrain verify` finds there what it finds in lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from waiting import wait_for

from streamtrain.checks.verify.gathering import read_topics
from streamtrain.checks.verify.topics import KEYS
from streamtrain.checks.verify.verify import check_topics
from streamtrain.checks.verify.verify_report import Report
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile, found_files
from streamtrain.record_sources.given_files import GivenFiles
from tests.checks.verify.forger import Forger, copied, forged, messages, recounted, tables, unpacked, versions
from tests.checks.verify.topics_in_memory import Partition, Written
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.fitting.test_fit import written as file_of

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


def checked(written: Written, files: list[FoundFile], fast: bool = False) -> Report:
    return check_topics(replace(written.topics(), files=GivenFiles(files) if files else None), fast)


def ends_first(ranges: Any) -> Any:
    """The range that ends the first file."""
    return np.flatnonzero((ranges["partition"] == 0) & (ranges["to_offset"] == ROWS[0]) & (ranges["trained"] > 0))


def recount(**more: dict[str, int]) -> Forge:
    """Changes the first range of a publication that begins and ends within a file, and all that counts it."""
    return lambda written: recounted(written, versions(written)[1], lambda ranges: [0], **{**LESS, **more})


def leave_the_rest_of_the_first_file(written: Written) -> Written:
    """Leaves the first file's last row out of all ranges and counts. The next file is read all the same."""
    logs = [unpacked(message.value) for message in messages(written, "rounds")]
    found = next(log["version"] for log in logs if len(ends_first(tables(log)[0])))
    of_ranges = {"to_offset": -1, "trained": -1}
    of_manifests = {"positions.partitions.0.0": -1, **LESS["manifests"]}
    return recounted(written, found, ends_first, **{**LESS, "ranges": of_ranges, "manifests": of_manifests})


def with_files(written: Written, change: Callable[[list[Any]], None], consistent: bool) -> Written:
    """Changes the files in each manifest; `consistent`: what names them by their digests follows."""
    identity: dict[str, str] = {}

    def manifest(document: Any) -> None:
        for gap in document["gaps"]:
            if "files" in gap:
                before = gap["topic_id"][1]
                change(gap["files"])
                digests = "".join(file[1] for file in gap["files"]).encode()
                identity[before] = "files:" + sha256(digests).hexdigest() if consistent else before
                gap["topic_id"][1] = identity[before]
        document["positions"]["topic_id"] = identity[document["positions"]["topic_id"]]

    def log(document: Any) -> None:
        for terms in document["terms"]:
            terms["topic_id"] = identity.get(terms["topic_id"], terms["topic_id"])

    found = [each.value for each in messages(written, "snapshots") if (each.key or b"").endswith(b"/m")]
    every = [unpacked(value)["version"] for value in found if value]
    first = Forger(written, manifests=dict.fromkeys(every, manifest)).forged()  # the identity is known then
    if not consistent:
        return first
    return Forger(first, logs=dict.fromkeys(versions(written), log)).forged()


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
    "digests are swapped": (lambda written: with_files(written, swap, False), "have the digests", True),
    "a digest is another": (lambda written: with_files(written, another, False), "ab" * 32, True),
    "digests are swapped everywhere": (lambda written: with_files(written, swap, True), "records are", False),
    "a file is a row shorter": (
        lambda written: with_files(written, shorter, False),
        "up to row 900, and has 899",
        True,
    ),
}


def test_a_good_history_passes(history: tuple[Written, list[FoundFile]]) -> None:
    written, files = history
    assert len(versions(written)) >= 3
    for given in (files, []):
        for fast in (False, True):
            report = checked(copied(written), given, fast)
            assert report.ok, "\n".join(report.lines())


@pytest.mark.parametrize("name", FORGED)
def test_a_forgery_is_named(history: tuple[Written, list[FoundFile]], name: str) -> None:
    written, files = history
    forge, words, without_files = FORGED[name]
    forged = forge(written)
    for given in (files, []) if without_files else (files,):
        assert any(words in each for each in problems(forged, given)), problems(forged, given)


def problems(written: Written, given: list[FoundFile]) -> list[str]:
    try:
        return [each for check in checked(written, given).checks for each in check.problems]
    except UserMistake as mistake:
        return [str(mistake)]


SHORT = ("the newest log is missing", "a prediction is committed twice")
ON_KAFKA = {
    "the newest log is missing": "rounds",
    "a tombstone in the round log": "rounds",
    "a thousand rows seen more everywhere": "snapshots",
    "a dead letter names another offset": "dead_letters",
    "a prediction is committed twice": "predictions",
}


@pytest.fixture
def job(kafka, tmp_path: Path) -> LiveJob:
    """Trained in three publications, with dead letters; then asked, also for what cannot be answered."""
    job = LiveJob(kafka, tmp_path, partitions=2, format="json", max_dead_letter_share=1)
    for seed in range(3):
        job.produce(200, seed)
        job.produce_values([b'{"x1": "bad"}'] * 4, partition=0)
        threaded.rows_after(job.path)
    requests = [{"key": b"%d" % at, "value": json.dumps(row)} for at, row in enumerate(rows(40))]
    requests += [{"value": bad} for bad in (b'{"x1": "bad"}', b"{", b"", None, b'[{"x1": 1}, {"x1": "bad"}]')]
    job.produce_messages(requests, f"{job.name}.requests")
    assert job.here("predict", "--until-end").returncode == 0
    job.verified()
    return job


def read(job: LiveJob) -> Written:
    with read_topics(job.job) as topics:
        written = Written(job.name)
        for key in KEYS:
            topic = getattr(topics, key)
            found = [(each.low, each.end, list(each.read(each.low, each.end))) for each in topic.partitions]
            written.partitions[key] = [Partition(*each) for each in found]
            written.topic_ids[key] = topic.topic_id
    return written


def write(job: LiveJob, name: str, partitions: list[Partition]) -> None:
    """Makes the topic again with these messages; each run of offsets is a transaction, whose marker takes the next."""
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    admin.delete_topics([name])[name].result(30)
    wait_for(lambda: name not in job.admin.names())
    job.admin.ensure(job.job.topic_wishes())
    quick = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 20}  # a transaction in 5 ms, and not in 100
    producer = Producer({"bootstrap.servers": job.bootstrap, "transactional.id": f"forger-{name}", **quick})
    producer.init_transactions(60)
    for number, partition in enumerate(partitions):
        runs = groupby(enumerate(partition.messages), key=lambda each: each[1].offset - each[0])
        for _, run in runs:
            producer.begin_transaction()
            for _, message in run:
                more = {"timestamp": message.timestamp_ms, "headers": list(message.headers)}
                producer.produce(name, message.value, message.key, number, **more)
            producer.commit_transaction(60)


@pytest.mark.parametrize("names", [SHORT, pytest.param(tuple(ON_KAFKA), marks=pytest.mark.full)], ids=["two", "all"])
def test_what_lists_tell_kafka_tells(job: LiveJob, names: tuple[str, ...]) -> None:
    good = read(job)
    for name in names:
        topic = ON_KAFKA[name]
        topic_name = job.job.topic(topic.replace("_", "-")).name or ""
        write(job, topic_name, forged(good, name).partitions[topic])
        done = job.here("verify", "--json")
        report = json.loads(done.stdout)
        assert done.returncode == 1 and not report["ok"], f"{name}: {done.stdout}\n{done.stderr}"
        write(job, topic_name, good.partitions[topic])
    job.verified()
