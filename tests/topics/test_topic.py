"""The registry of topics, their names and settings."""

from __future__ import annotations

import pytest

from streamtrain.errors import UserMistake
from streamtrain.topics import REGISTRY
from streamtrain.topics.topic import all_topics, topic


def test_every_topic_is_named_as_its_file() -> None:
    assert [entry.key for entry in all_topics().values()] == REGISTRY.names() == list(all_topics())


def test_names() -> None:
    assert topic("dead-letters").name("flights") == "flights.dead-letters"
    assert topic("records").name("flights", "prod.flights") == "prod.flights"
    for key in ("snapshots", "control"):
        assert topic(key).name("flights") == f"flights.{key}"
        with pytest.raises(UserMistake, match="cannot be renamed"):
            topic(key).name("flights", "elsewhere")
    with pytest.raises(UserMistake, match="249"):
        topic("records").name("x" * 250)
    with pytest.raises(UserMistake, match="expected one of"):
        topic("record")


def test_policies() -> None:
    assert {key for key, entry in all_topics().items() if entry.config["cleanup.policy"] == "compact"} == {
        "snapshots", "control",
    }  # fmt: skip
    assert int(topic("snapshots").config["min.compaction.lag.ms"]) >= 60_000
    assert [key for key, entry in all_topics().items() if not entry.owned] == ["records", "requests"]
