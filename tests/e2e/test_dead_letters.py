"""Rows that go on: dead letters listed, shown and sent again once mended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest
from failing_librdkafka import built, environment

from streamtrain.clients.dead_letters import Resender
from streamtrain.job import Job
from tests.e2e import commands
from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_gaps import remove
from tests.e2e.threaded import rows_after

GOOD = list(rows(8))
BAD = {**{name: value for name, value in GOOD[0].items() if name != "x1"}, "note": "mended later"}
HEADERS: list[tuple[str, str | bytes | None]] = [("trace", b"abc"), ("streamtrain-run", b"9")]


@pytest.fixture
def job(kafka: Any, tmp_path: Path) -> LiveJob:
    """One record of three rows of which one is bad, one cut off in its last row, and one that is junk; trained."""
    live_job = LiveJob(kafka, tmp_path, partitions=2, max_dead_letter_share=1.0)
    values = [msgpack.packb([GOOD[0], BAD, GOOD[1]]), msgpack.packb([GOOD[2], GOOD[3]])[:-3], b"\xc1"]
    live_job.produce_messages({"value": value, "key": b"k", "headers": HEADERS, "partition": 1} for value in values)
    live_job.produce_values(map(msgpack.packb, GOOD))
    rows_after(live_job.path)
    return live_job


def verb(job: LiveJob, name: str, *arguments: str, code: int = 0) -> list[Any]:
    done = job.here(f"dead-letters {name}", *arguments, "--json")
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def records(job: LiveJob) -> list[Any]:
    done = job.here("read", "records", "--until-end", "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def mend(job: LiveJob) -> None:
    """A row without x1 is one from now on."""
    text = job.path.read_text()
    job.path.write_text(text.replace('kind = "number", standardize = true', 'kind = "number", missing = 0'))


def test_only_dead_rows_are_sent_again_and_once(job: LiveJob, tmp_path: Path) -> None:
    listed = verb(job, "list")
    places = [(letter["record_partition"], letter["record_offset"], letter["rows"]) for letter in listed]
    assert places == [(1, 0, 1), (1, 1, 1), (1, 2, 1)]
    (grouped,) = verb(job, "reasons")
    assert sum(reason["rows"] for reason in grouped["reasons"]) == 3
    (document,) = verb(job, "show", str(listed[0]["offset"]))
    assert document["dead_rows"] == [BAD] and document["key"] == "k"
    assert document["headers"] == [["trace", "abc"]]  # what has our prefix would be taken for ours
    assert document["reasons"][0]["from"] == 1 and document["still_bad"] == ["$.x1"]
    verb(job, "show", "999", code=2)
    before = records(job)
    verb(job, "resend", code=2)  # they would be dead letters again
    mend(job)
    (dry,) = verb(job, "resend", "--dry-run", code=1)
    assert (dry["letters"], dry["rows"], len(dry["refused"])) == (1, 1, 2)
    assert all("cannot be decoded" in text for text in dry["refused"])
    failing = environment(built(tmp_path), tmp_path, "send_offsets_to_transaction=1!")
    done = commands.run(["dead-letters", "resend", str(job.path)], failing)
    assert done.returncode in (1, 3) and "Traceback" not in done.stderr, done.stderr
    assert records(job) == before
    earlier = Resender(Job.load(job.path))
    assert earlier.look().rows == 1
    (report,) = verb(job, "resend", code=1)
    assert [report[name] for name in ("letters", "rows", "refused")] == [1, 1, dry["refused"]]
    assert list(earlier.send(job.records)) == [], "it had looked before that"
    (new,) = [each for each in records(job) if each not in before]
    assert new["rows"] == [BAD] and new["key"] == "k" and new["partition"] == 1 and new["headers"] == {"trace": "abc"}
    (again,) = verb(job, "resend")
    assert (again["letters"], again["refused"]) == (0, [])


def test_what_stood_around_a_record_and_found_no_place_in_its_letter_is_sent_again(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, max_dead_letter_share=1.0)
    around = [(b"k" * 5_000, [("trace", b"t")]), (b"k", [("trace", b"t" * 40_000)])]
    job.produce_messages({"value": msgpack.packb([BAD]), "key": key, "headers": headers} for key, headers in around)
    job.produce_values(map(msgpack.packb, GOOD))
    rows_after(job.path)
    job.verified()
    mend(job)
    (report,) = verb(job, "resend")
    assert (report["letters"], report["refused"]) == (2, [])
    with_key = [(each["key"], each["headers"]) for each in records(job)[-2:]]
    assert with_key == [(key.decode(), {name: raw.decode() for name, raw in headers}) for key, headers in around]


def test_letters_left_behind_are_passed_over(job: LiveJob) -> None:
    (report,) = verb(job, "resend", "--skip-bad", code=1)
    assert report["letters"] == 0 and report["still_bad"] == {"$.x1": 1}
    mend(job)
    (again,) = verb(job, "resend")
    assert again["letters"] == 0


@pytest.mark.parametrize("is_gone", [False, True], ids=["all there", "a record gone"])
def test_a_batch_that_was_left_out_is_sent_from_its_records(kafka: Any, tmp_path: Path, is_gone: bool) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", max_dead_letter_share=1.0)
    job.produce_messages({"value": msgpack.packb(GOOD[at % 4]), "key": str(at), "partition": 0} for at in range(1000))
    events = job.train("--until-end", failpoints="*worker.at_slot=3!SEGV")
    deaths = [event for event in events if event["event"] == "worker_died"]
    assert [death["slot"] for death in deaths] == [3, 3, 3] and deaths[0]["how"] == "SIGSEGV"
    if is_gone:
        (listed,) = verb(job, "list")
        remove(job, listed["record_offset"] + 1)
        (report,) = verb(job, "resend", code=1)
        place = f"{job.records}[0]@{listed['record_offset']}"
        assert report["rows"] == 0 and len(report["refused"]) == 1
        assert report["refused"][0].startswith(f"{place}: its record is")
        return
    assert job.verified()["rows"] == {"trained": 1000 - 64, "dead_lettered": 64, "filtered": 0}
    assert "workers died at it three times" in job.here("read", "dead-letters", "--until-end", "--json").stdout
    job.replayed()
    (report,) = verb(job, "resend")
    assert (report["letters"], report["rows"], report["refused"]) == (1, 64, [])
    sent = [each["key"] for each in records(job)]
    assert sent[1000:] == sent[192:256]  # each row has the key of its record
    rows_after(job.path)
    assert job.verified()["rows"] == {"trained": 1000, "dead_lettered": 64, "filtered": 0}


LARGE = [*GOOD * 1500, BAD]  # more than a letter holds: its record is named instead


def test_a_reference_whose_record_is_gone_is_refused_by_name(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2, max_dead_letter_share=1.0)
    job.produce_values([msgpack.packb(LARGE)] * 3, partition=1)
    rows_after(job.path)
    job.produce_values([msgpack.packb(LARGE)], partition=0)
    rows_after(job.path)
    mend(job)
    (whole,) = verb(job, "resend", "--dry-run")
    assert (whole["letters"], whole["rows"], whole["refused"]) == (4, 4, [])
    remove(job, 2, partition=1)
    remove(job, 1)
    (document,) = verb(job, "show", "0")
    (report,) = verb(job, "resend", code=1)
    assert (report["letters"], report["rows"], report["still_bad"]) == (1, 1, {})
    gone = [f"{job.records}[1]@{offset}: its record is gone: the partition holds offsets 2 to 2" for offset in (0, 1)]
    assert report["refused"] == [*gone, f"{job.records}[0]@0: its record is gone: the partition holds no record"]
    assert document["refused"] == gone[:1] and document["dead_rows"] == []
    assert [record["rows"] for record in records(job) if record["offset"] > 2] == [[BAD]]
    (again,) = verb(job, "resend")
    assert (again["letters"], again["refused"]) == (0, [])
