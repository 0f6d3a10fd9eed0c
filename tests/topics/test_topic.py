"""The registry of topics, their names and settings."""

from __future__ import annotations

import pytest

from streamtrain.clients.writer import RecordWriter
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.topics import REGISTRY
from streamtrain.topics.topic import all_topics, row_topics, topic


def test_every_topic_is_named_as_its_file() -> None:
    assert [entry.key for entry in all_topics().values()] == REGISTRY.names() == list(all_topics())


def test_names() -> None:
    assert topic("dead-letters").name("flights") == "flights.dead-letters"
    assert topic("records").name("flights", "prod.flights") == "prod.flights"
    fixed = [entry for entry in all_topics().values() if not entry.renameable]
    assert fixed
    for entry in fixed:
        assert entry.name("flights") == f"flights.{entry.suffix}"
        with pytest.raises(UserMistake, match="cannot be renamed"):
            entry.name("flights", "elsewhere")
    with pytest.raises(UserMistake, match="249"):
        topic("records").name("x" * 250)
    with pytest.raises(UserMistake, match="expected one of"):
        topic("record")


def test_policies() -> None:
    for entry in all_topics().values():   # what a follower must find without the job file is found by its key there
        assert (entry.config["cleanup.policy"] == "compact") == (not entry.renameable), entry.key
    assert int(topic("snapshots").config["min.compaction.lag.ms"]) >= 60_000
    assert [entry.suffix for entry in all_topics().values() if not entry.owned] == row_topics()


@pytest.mark.parametrize("key", [key for key, entry in all_topics().items() if entry.owned])
def test_programs_write_rows_to_topics_of_rows_alone(key: str) -> None:
    job = 'name = "x"\n[kafka]\nbootstrap.servers = "x:1"\n[columns]\na = {}\nb = { role = "label" }\n'
    with pytest.raises(UserMistake, match=f"RecordWriter: expected {' or '.join(row_topics())}, got"):
        RecordWriter(Job.parse(job), key)
