"""The registry of topics, their names and settings."""

from __future__ import annotations

import pytest

from streamtrain.errors import UserMistake
from streamtrain.topics._topic import registry, topic


def test_every_file_is_a_topic() -> None:
    assert list(registry()) == [
        "control", "dead_letters", "predictions", "records", "requests", "rounds", "snapshots",
    ]  # fmt: skip


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
    assert {key for key, entry in registry().items() if entry.config["cleanup.policy"] == "compact"} == {
        "snapshots", "control",
    }  # fmt: skip
    assert int(topic("snapshots").config["min.compaction.lag.ms"]) >= 60_000
    assert [key for key, entry in registry().items() if not entry.owned] == ["records", "requests"]
