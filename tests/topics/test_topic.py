"""The registry of topics: names, settings and golden messages; the control topic's wire."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import golden_messages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtrain.clients.writer import RecordWriter
from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.job import Job
from streamtrain.topics import REGISTRY, control, rounds
from streamtrain.topics.control import Control, Newest, RunEnd, RunEntry
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message, all_topics, job_topics, row_topics, topic


def test_names() -> None:
    assert topic("dead-letters").name("flights") == "flights.dead-letters"
    assert topic("records").name("flights", "prod.flights") == "prod.flights"
    fixed = [entry for entry in all_topics().values() if not entry.renameable]
    assert fixed
    for entry in fixed:
        assert entry.name("flights") == f"flights.{entry.suffix}"
        with pytest.raises(UserMistake, match=r"name: expected no name: .* got 'elsewhere'"):
            entry.name("flights", "elsewhere")
    with pytest.raises(UserMistake, match="249"):
        topic("records").name("x" * 250)
    with pytest.raises(UserMistake, match="expected one of"):
        topic("record")
    for tables, text in (
        ({"record": {}}, "expected one of"),
        ({"snapshots": {"name": "x"}}, r"topics.snapshots.name: expected no name: .* got 'x'"),
        ({"control": {"partitions": 3}}, r"topics.control.partitions: expected 1, which is fixed, got 3"),
    ):
        with pytest.raises(UserMistake, match=text):
            job_topics("job", tables)


def test_policies() -> None:
    assert [entry.key for entry in all_topics().values()] == REGISTRY.names() == list(all_topics())
    for entry in all_topics().values():  # what a follower must find without the job file is found by its key there
        assert (entry.config["cleanup.policy"] == "compact") == (not entry.renameable), entry.key
    assert int(topic("snapshots").config["min.compaction.lag.ms"]) >= 60_000
    assert [entry.suffix for entry in all_topics().values() if not entry.owned] == row_topics()


def test_what_a_job_may_say_of_a_topic() -> None:
    for entry in all_topics().values():
        policy = {"config": {"cleanup.policy": "delete" if entry.config["cleanup.policy"] == "compact" else "compact"}}
        wrong = {name for (name, *_), _, _ in entry.wrong({"name": "a", "partitions": entry.partitions + 1, **policy})}
        assert wrong == (
            ({"name"} if not entry.renameable else set())
            | ({"partitions"} if entry.fixed_partitions else set())
            | ({"config"} if entry.owned else set())
        )
        wish = entry.wish("flights", {"config": {"retention.ms": 5}, "replication": 3})
        assert wish.config == {**entry.config, "retention.ms": "5"} and wish.replication == 3
        assert entry.of({entry.suffix: 1}) == entry.of({entry.key: 1}) == 1 and entry.of({"other": 1}) is None
        with pytest.raises(UserMistake) if entry.owned else nullcontext():
            entry.wish("flights", policy)


def test_a_trainer_writes_what_has_one_partition_alone() -> None:
    """An end that Kafka has forgotten is looked for in each of them."""
    written = {entry.key: entry.written for entry in all_topics().values() if entry.written is not None}
    assert {key for key, how in written.items() if how == "alone"} == {
        entry.key for entry in all_topics().values() if entry.fixed_partitions
    }
    assert [key for key, how in written.items() if how == "shared"] == ["dead_letters"]


@pytest.mark.parametrize("key", [key for key, entry in all_topics().items() if entry.owned])
def test_programs_write_rows_to_topics_of_rows_alone(key: str) -> None:
    job = 'name = "x"\n[kafka]\nbootstrap.servers = "x:1"\n[columns]\na = {}\nb = { role = "label" }\n'
    with pytest.raises(UserMistake, match=f"RecordWriter: expected {' or '.join(row_topics())}, got"):
        RecordWriter(Job.parse(job), key)


GOLDEN = Path(__file__).parents[1] / "golden" / "control.v2.msgpack"  # the three values, one after the other
RUN = Run(12, "ab" * 16)
ENTRY = RunEntry(RUN, "flights", "host-1", 4711, 1_750_000_000_000, "0.1.0")
END = RunEnd(RUN, 1, "the ceiling of dead letters was passed", 1_750_000_060_000)
NEWEST = Newest(31, bytes(range(32)), "cd" * 16)
MESSAGES = [control.run_message(ENTRY), control.end_message(END), control.newest_message(NEWEST)]
DECODERS = [control.decode_run, control.decode_end, control.decode_newest]


def taken(*messages: Message) -> Control:
    found = Control()
    for message in messages:
        found.take(message.key, None if message.value is None else bytes(message.value))
    return found


def test_golden_bytes() -> None:
    assert [message.key for message in MESSAGES] == [b"run/12", b"end/12", b"newest"]
    assert b"".join(bytes(message.value or b"") for message in MESSAGES) == GOLDEN.read_bytes()
    found = taken(*MESSAGES)
    assert (found.runs, found.ends, found.newest) == ({12: ENTRY}, {12: END}, NEWEST)


@pytest.mark.parametrize("at", range(3))
def test_every_truncation_is_an_error(at: int) -> None:
    value = bytes(MESSAGES[at].value or b"")
    for length in range(len(value)):
        with pytest.raises(CheckFailed, match=r"run entry|end of a run|newest"):
            DECODERS[at](value[:length])


def test_the_holder_is_the_run_of_the_highest_number_wherever_its_entry_lies() -> None:
    older = control.run_message(RunEntry(Run(2, "cd" * 16), "flights", "host-2", 1, 1, "0.1.0"))
    found = taken(MESSAGES[0], older)
    assert found.holder == ENTRY and sorted(found.runs) == [2, 12]
    assert taken().holder is None


def test_a_tombstone_takes_an_entry_away_and_other_keys_are_passed_over() -> None:
    found = taken(*MESSAGES, *(message._replace(value=None) for message in MESSAGES), Message(b"later", b"x"))
    assert found == Control()


def test_an_entry_under_another_runs_key_is_refused() -> None:
    with pytest.raises(CheckFailed, match=r"run/13: expected the entry of that run, got 12's"):
        taken(MESSAGES[0]._replace(key=b"run/13"))
    with pytest.raises(CheckFailed, match=r"end/x: expected a run's number"):
        taken(MESSAGES[1]._replace(key=b"end/x"))


OURS = [key for key, topic in all_topics().items() if topic.owned]
GOLDEN_MESSAGES = {key: [message for message, _ in golden_messages.read(key)] for key in OURS}


@pytest.mark.parametrize("key", OURS)
def test_golden_messages(key: str) -> None:
    found = golden_messages.read(key)
    assert found
    for message, expected in found:
        shown = golden_messages.shown(key, message)
        assert json.loads(json.dumps(shown)) == shown == expected


@pytest.mark.parametrize("key", OURS)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_bytes_are_shown_or_get_our_error(key: str, data: st.DataObject) -> None:
    """A golden message with other bytes or another header, a part of it, or any bytes."""
    message = data.draw(st.sampled_from(GOLDEN_MESSAGES[key]))
    changed = bytearray(message.value or b"\0")
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    part = changed[: data.draw(st.integers(0, len(changed)))]
    headers = dict(message.headers)
    if headers:
        headers[data.draw(st.sampled_from(sorted(headers)))] = data.draw(st.binary() | st.just(b"[" * 100_000))
    name = data.draw(st.none() | st.binary() | st.just(message.key))
    for value in (bytes(changed), bytes(part), data.draw(st.none() | st.binary())):
        given_message = Message(name, value, tuple(headers.items()))
        shown: dict[str, Any] = golden_messages.shown(key, given_message)
        assert shown.get("error") or "error" in shown["document"] or shown["line"]
        if key == "rounds":
            with suppress(CheckFailed):
                rounds.join([rounds.decode(value or b"")])
    assert hasattr(REGISTRY.get(key), "line")
