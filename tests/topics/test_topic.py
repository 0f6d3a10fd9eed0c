"""The registry of topics, their names and settings."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from streamtrain.clients.writer import RecordWriter
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.topics import REGISTRY
from streamtrain.topics.topic import all_topics, job_topics, row_topics, topic


def test_every_topic_is_named_as_its_file() -> None:
    assert [entry.key for entry in all_topics().values()] == REGISTRY.names() == list(all_topics())


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
    for given, text in (
        ({"record": {}}, "expected one of"),
        ({"snapshots": {"name": "x"}}, r"topics.snapshots.name: expected no name: .* got 'x'"),
        ({"control": {"partitions": 3}}, r"topics.control.partitions: expected 1, which is fixed, got 3"),
    ):
        with pytest.raises(UserMistake, match=text):
            job_topics("job", given)


def test_policies() -> None:
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
