"""The one table of what we set of librdkafka: each client is made from it, and a job's file is checked by it."""

from __future__ import annotations

import pytest

from streamtrain import _native
from streamtrain.job.kafka_settings import OWNED
from streamtrain.job.librdkafka import accepts, properties
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.settings import Purpose, client_settings

TABLE = _native.kafka_settings()


def test_a_client_has_one_value_of_each_which_librdkafka_takes_and_a_reason() -> None:
    pairs = [(name, purpose) for name, _, _, purposes, _ in TABLE for purpose in purposes]
    assert len(pairs) == len(set(pairs)) and {purpose for _, purpose in pairs} == set(Purpose)
    assert {name for name, *_ in TABLE} - set(properties()) == set()
    assert [(name, value) for name, value, *_ in TABLE if value is not None and not accepts(name, value)] == []
    assert [name for name, _, _, _, reason in TABLE if not reason] == []
    assert set(OWNED) == {name for name, _, hold, *_ in TABLE if hold == "owned"}


def test_the_users_come_first_where_they_may() -> None:
    given = {"fetch.wait.max.ms": "7", "isolation.level": "read_uncommitted", "sasl": {"username": "me"}}
    settings = client_settings(Purpose.FOLLOW, given, {"group.id": "mine"})
    assert (settings["fetch.wait.max.ms"], settings["isolation.level"]) == ("7", "read_committed")
    assert (settings["sasl.username"], settings["group.id"]) == ("me", "mine")
    assert client_settings(Purpose.ANSWERS, given)["fetch.wait.max.ms"] == "10"


@pytest.mark.parametrize("purpose", [purpose for purpose in Purpose if purpose not in (Purpose.ADMIN, Purpose.START)])
def test_no_client_reads_or_writes_other_than_exactly_once(purpose: Purpose) -> None:
    contrary = {"isolation.level": "read_uncommitted", "enable.idempotence": "false", "acks": "0"}
    settings = client_settings(purpose, contrary)
    side = {"isolation.level": "read_committed"}, {"enable.idempotence": "true", "acks": "all"}
    assert any(kept.items() <= settings.items() for kept in side), settings


def test_several_clients_share_the_memory_for_messages() -> None:
    name = "queued.max.messages.kbytes"
    alone = client_settings(Purpose.INGEST, {})
    of_four = client_settings(Purpose.INGEST, {}, clients=4)
    assert int(alone[name]) == 4 * int(of_four.pop(name)) and of_four.items() <= alone.items()
    assert client_settings(Purpose.INGEST, {name: 2048}, clients=64)[name] == "1024"


def test_who_makes_a_client_by_confluent_kafka_asks_the_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what its library has of its own."""
    made: list[dict[str, object]] = []

    def opened(settings: dict[str, object], logger: object) -> object:
        made.append(settings)
        raise AssertionError

    monkeypatch.setattr("streamtrain.kafka.admin.AdminClient", opened)
    with pytest.raises(AssertionError):
        Admin("b:1", {"client.id": "mine"}).names()
    ours = client_settings(Purpose.ADMIN, {"client.id": "mine"}, {"bootstrap.servers": "b:1"})
    assert ours["reconnect.backoff.max.ms"] == "1000" and len(ours) == 3
    assert ours.items() <= made[0].items()
