"""Bounds of memory, of a publication and of time: floods of bad records, long letters, rounds, frames, long schemas."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
import pytest

from streamtrain import failpoints
from streamtrain._native import CloseReason
from streamtrain.checks.verify.runs import read_control
from streamtrain.columns.formats._proto_text import text_messages
from streamtrain.columns.record_encoding import Records
from streamtrain.job import Job
from streamtrain.kafka.clients import Message
from streamtrain.kafka.round_logs import round_logs
from streamtrain.record_sources.source_kind import Topic
from streamtrain.topics import control
from streamtrain.topics.control import RunEnd, RunEntry
from streamtrain.topics.manifest import Run
from tests.checks.verify.topics_in_memory import Listed
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows

BAD = 60_000
MAX_LETTERS = 24_000  # ingest opens no round above 20,000, and one round brings 4,000 at most
RING_BYTES = 16 << 20


def bad_rows(count: int) -> Iterator[dict[str, Any]]:
    one = next(rows(1))
    return ({**one, "x3": "bad", "x4": at} for at in range(count))


def check_flood(job: LiveJob, events: list[dict[str, Any]], bad: int) -> None:
    """Each publication is bounded, and what waits for it."""
    dead = [sum(event["dead_letters"].values()) for event in events if event["event"] == "published"]
    assert len(dead) >= bad / MAX_LETTERS and max(dead) <= MAX_LETTERS, dead
    waiting = [event["unpublished_bytes"] for event in events if event["event"] == "progress"]
    assert max(waiting) <= RING_BYTES, waiting
    assert job.verified()["rows"] == {"trained": 100, "dead_lettered": bad, "filtered": 0}


def test_a_flood_goes_out_in_bounded_publications(kafka: Any, tmp_path: Path) -> None:
    """Bad records, then a few good ones; a publication is due only because ingest waits for it."""
    job = LiveJob(kafka, tmp_path, publish_interval="1h", max_dead_letter_share=1.0, round_interval="off")
    job.produce_values(map(msgpack.packb, bad_rows(30_000)))
    job.produce(100)
    run = threaded.trained(job.path)
    assert run.code == 0, run.errors
    check_flood(job, run.events, 30_000)


def resident_peaks_mb(processes: Sequence[psutil.Process]) -> list[int]:
    """The peak of each; none of a process that has ended."""
    found = []
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            found += [int(line.split()[1]) // 1000 for line in lines if line.startswith("VmHWM")]
    return found


@pytest.mark.full
def test_in_a_flood_the_coordinators_memory_stays_as_small_and_a_restart_goes_on(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="1h", max_dead_letter_share=1.0, round_interval="off")
    job.produce_values(map(msgpack.packb, bad_rows(BAD)))
    job.produce_values(2 * BAD * [b"\xc1"])
    job.produce(100)
    running = job.start("train", "--until-end", STREAMTRAIN_FAILPOINTS="coordinator.after_commit=4")
    assert running.process.stdout is not None
    peaks_mb: list[int] = []
    for line in running.process.stdout:
        running.events.append(json.loads(line))
        if running.events[-1]["event"] == "progress":
            peaks_mb += resident_peaks_mb(running.children()[:1])  # the coordinator's
    assert running.finish() == 0
    assert "restarting" in [event["event"] for event in running.events]
    assert peaks_mb[-1] < 140, (peaks_mb[-1], len(peaks_mb))
    check_flood(job, running.events, 3 * BAD)
    job.replayed()


def test_long_letters_are_bounded_by_their_bytes(kafka: Any, tmp_path: Path) -> None:
    """Longer ones than a letter carries, and records whose bytes would fill the ring many times over."""
    job = LiveJob(kafka, tmp_path, partitions=1, publish_interval="1h", round_interval="off", max_dead_letter_share=1.0)
    one = next(rows(1))
    bad = {**one, "x3": "bad"}
    many = msgpack.packb([bad if at % 65 == 0 else {**one, "padding": "." * 60} for at in range(3000)])  # 3,000 rows
    long = msgpack.packb({**bad, "padding": "." * 400_000})
    job.produce_values([many if at % 4 == 0 else long for at in range(80)])
    run = threaded.trained(job.path)
    assert run.code == 0, run.errors
    waiting = [event["unpublished_bytes"] for event in run.events if event["event"] == "progress"]
    assert max(waiting) <= RING_BYTES + 2**20, waiting  # and the round log
    dead = -(-3000 // 65) * 20 + 60
    assert job.verified()["rows"] == {"trained": 20 * 3000 - dead + 60, "dead_lettered": dead, "filtered": 0}
    published = len([event for event in run.events if event["event"] == "published"])
    assert 3 <= published <= 12  # 31 MB in all, a record's bytes once a round


def closed_by(job: LiveJob) -> list[int]:
    logs = list(round_logs(job.job.kafka_consumer(), job.job.topic("rounds").name or ""))
    return [int(reason) for log in logs for reason in log.rounds["closed_by"]]


def test_rows_are_published_at_the_publications_interval_not_at_the_rounds(kafka: Any, tmp_path: Path) -> None:
    """A publication that is due closes the open round and takes it, however long the round could stay open."""
    job = LiveJob(kafka, tmp_path, round_interval="1h", publish_interval="100ms")
    running = threaded.Run(job.path)
    for count in (10, 20, 30):  # far too few for a round
        job.produce(10, seed=count)
        running.wait_event("published", rows=count)
    assert running.drain() == 0
    reasons = closed_by(job)
    assert set(reasons) <= {CloseReason.PUBLICATION, CloseReason.DRAINED}
    assert reasons.count(CloseReason.PUBLICATION) >= 3
    assert job.verified()["rows"]["trained"] == 30
    job.replayed()


def test_rounds_that_close_only_when_full_stay_open(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", publish_interval="1ms")
    running = threaded.Run(job.path)
    for turn in range(1, 5):  # each leaves a round open
        job.produce(1000, seed=turn)
        running.wait_event("published", rows=1000 * turn - 500)
    assert running.drain() == 0
    *full, last = closed_by(job)
    assert set(full) == {CloseReason.FULL} and last == CloseReason.DRAINED


def test_a_publication_that_is_not_taken_at_once_closes_one_round(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third transaction stalls while rows come in and the next publication is due."""
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="1h", publish_interval="100ms")
    monkeypatch.setattr(failpoints, "_armed", {})
    failpoints.arm("coordinator.stall_in_transaction=4~3")
    running = threaded.Run(job.path)
    job.produce(10)
    running.wait_event("published", rows=10)
    for seed in range(200):
        job.produce(2, seed=seed)
    running.wait_event("published", rows=410)
    assert running.drain() == 0
    reasons = closed_by(job)
    published = [event for event in running.events if event["event"] == "published"]
    assert reasons.count(CloseReason.PUBLICATION) <= len(published) + 1, (reasons, len(published))


class Frame(dict[str, Any]):
    """A dict that may be referred to weakly."""


def test_of_an_iterator_of_frames_only_one_is_in_memory() -> None:
    job = Job.from_tables({"columns": {"x": {}, "y": {"role": "label"}}, "model": {"layers": []}})
    given: list[weakref.ref[Frame]] = []

    def frames() -> Iterator[Frame]:
        for _ in range(5):
            frame = Frame(x=np.zeros(4, "f4"), y=np.zeros(4, "f4"))
            given.append(weakref.ref(frame))
            yield frame
            del frame

    records = Records(job.schema, job.records.named, "rows", 1024, 1 << 20)
    for _ in records.blocks(frames(), key=None, own_keys=False):
        assert sum(frame() is not None for frame in given) == 1


def reading_s(fields: int) -> float:
    text = "message Row {\n" + "".join(f"  float x{number} = {number};\n" for number in range(1, fields + 1)) + "}"
    start = time.process_time()
    (row,) = text_messages(text)["messages"]
    assert len(row["fields"]) == fields
    return time.process_time() - start


def verifying_s(entries: int) -> float:
    """Returns the processor time in seconds to verify a job's control topic of `entries` starts and ends of runs."""
    written = []
    for number in range(1, entries // 2 + 1):
        run = Run(number, f"{number:032x}")
        written.append(control.run_message(RunEntry(run, "often", "host", 1, 1, "build")))
        written.append(control.end_message(RunEnd(run, 0, "stopped", 2)))
    messages = [Message(0, at, at, each.key, bytes(each.value or b""), [], 0, "") for at, each in enumerate(written)]
    topic = Topic("often.control", "id", [Listed(0, entries, messages)])
    start = time.process_time()
    check, found, _ = read_control("often", topic, entries)
    spent_s = time.process_time() - start
    assert not check.problems and len(found.runs) == len(found.ends) == entries // 2
    return spent_s


@pytest.mark.parametrize(("take", "count"), [(reading_s, 20_000), (verifying_s, 8_000)])
def test_ten_times_as_much_takes_ten_times_as_long(take: Any, count: int) -> None:
    """A .proto of 100,000 fields took five minutes, and many runs hours to verify, when both were quadratic."""
    assert min(take(count) for _ in range(2)) < 30 * min(take(count // 10) for _ in range(3))
