"""What Kafka refuses ends a predictor with its own words, for no repetition mends it. The rest is waited for."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from guarded_kafka import PASSWORD, GuardedKafka
from prediction_bench import PARTITIONS, Bench, running, wait_for
from served_model import ServedModel

from streamtrain.errors import KafkaBroken, KafkaDenied, StreamtrainError, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import LiveJob

pytestmark = pytest.mark.kafka

DELIVERIES = ["exactly_once", "at_least_once"]
READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
RIGHTS = {
    "requests": (TOPIC, "requests", READ), "group": (ResourceType.GROUP, "predict", READ),
    "predictions": (TOPIC, "predictions", WRITE), "id": (ResourceType.TRANSACTIONAL_ID, "predict", WRITE),
}  # fmt: skip


def served(bootstrap: str, job: str) -> Bench:
    bench = Bench(bootstrap, job)
    ServedModel(bootstrap, job).put()
    return bench


def config_as(bench: Bench, settings: dict[str, str], delivery: str) -> predictor.Config:
    config = bench.config(delivery)
    config.kafka_consumer.update(settings)
    return predictor.Config(**{**vars(config), "kafka_producer": settings})


def ask(bench: Bench, key: str, value: Any = (1, 1)) -> None:
    bench.ask(value, key)
    bench.flush()


@pytest.mark.parametrize(
    ("delivery", "right"),
    [(delivery, right) for delivery in DELIVERIES for right in RIGHTS if (delivery, right) != ("at_least_once", "id")],
)
@pytest.mark.parametrize("when", ["before", "while"])
def test_a_missing_right_ends_it(guarded: GuardedKafka, delivery: str, right: str, when: str) -> None:
    name = f"{right}.{delivery}.{when}"
    kind, suffix, operation = RIGHTS[right]
    bench = served(guarded.bootstrap, name)
    config = config_as(bench, guarded.sasl("alice", PASSWORD), delivery)
    if when == "before":
        guarded.deny("alice", kind, f"{name}.{suffix}", operation)
    with pytest.raises(KafkaDenied, match=r"[Aa]uthoriz") as refused, running(config) as counters:
        asked = 0
        if when == "while":
            ask(bench, "first")
            wait_for(lambda: counters["requests"] == 1)
            guarded.deny("alice", kind, f"{name}.{suffix}", operation)

        def ended() -> bool:
            nonlocal asked
            asked += 1
            ask(bench, str(asked))
            return "predictor" not in {thread.name for thread in threading.enumerate()}

        wait_for(ended)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.full)])
def test_a_password_that_holds_no_more_ends_it(guarded: GuardedKafka, delivery: str) -> None:
    bench = served(guarded.bootstrap, f"password.{delivery}")
    guarded.set_password("alice", "for now")
    config = config_as(bench, guarded.sasl("alice", "for now", "SCRAM-SHA-256"), delivery)
    with pytest.raises(KafkaDenied, match=r"[Aa]uthentication"), running(config) as counters:
        ask(bench, "first")
        wait_for(lambda: counters["requests"] == 1)
        guarded.set_password("alice", PASSWORD)
        guarded.broker.kill()
        guarded.broker.start()
        ask(bench, "second")
        wait_for(lambda: "predictor" not in {thread.name for thread in threading.enumerate()})


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_an_answer_too_large_for_its_topic_ends_it(kafka: Any, delivery: str) -> None:
    bench = served(kafka.bootstrap, kafka.fresh_name("large"))
    admin = AdminClient({"bootstrap.servers": bench.bootstrap})
    change = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", bench.predictions, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result()
    ask(bench, "many", [[1, 1]] * 2000)
    with pytest.raises(StreamtrainError, match=r"[Ll]arge") as refused:
        predictor.answer(bench.config(delivery, until_end=True), threading.Event())
    assert refused.value.exit_code == 1


@pytest.mark.parametrize("again", [False, True])
def test_a_bounded_run_ends_when_its_requests_are_deleted(kafka: Any, again: bool) -> None:
    bench = served(kafka.bootstrap, kafka.fresh_name("deleted"))
    ask(bench, "first")
    config = bench.config(until_end=True)
    common = {"bootstrap.servers": bench.bootstrap, "group.id": config.group}
    holder = Consumer({**common, "partition.assignment.strategy": "range,roundrobin"})  # of all partitions, meanwhile
    given: list[int] = []
    holder.subscribe([bench.requests], on_assign=lambda _, parts: given.extend(part.partition for part in parts))
    wait_for(lambda: holder.poll(0.1) or len(given) == PARTITIONS)
    turns = 0

    def report(counters: dict[str, int]) -> None:
        nonlocal turns
        turns += counters["version"] > 0
        if turns == 3:
            delete(bench.bootstrap, bench.requests)
            if again:
                Admin(bench.bootstrap).ensure([TopicWish("requests", bench.requests, PARTITIONS)])

    with pytest.raises(UserMistake, match=f"{bench.requests}.*was deleted"):
        predictor.answer(config, threading.Event(), report)
    holder.close()


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_bounded_run_ends_where_there_are_no_predictions(kafka: Any, delivery: str) -> None:
    bench = served(kafka.bootstrap, kafka.fresh_name("deleted"))
    ask(bench, "first")
    delete(bench.bootstrap, bench.predictions)
    with pytest.raises(UserMistake, match=f"{bench.predictions}.*was deleted"):
        predictor.answer(bench.config(delivery, until_end=True), threading.Event())


def delete(bootstrap: str, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.delete_topics([topic])[topic].result()
    wait_for(lambda: topic not in Admin(bootstrap).names())


def test_what_is_tried_again_is_said_again_seldom(
    kafka: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("seldom"))
    tries: list[int] = []

    def broken(self: SnapshotTopic) -> Any:
        tries.append(1)
        raise KafkaBroken(f"broken {len(tries)} times")

    monkeypatch.setattr(SnapshotTopic, "newest_manifest", broken)
    monkeypatch.setattr("streamtrain.kafka.following.RETRY_S", 0.01)

    def said() -> int:
        return sum("following the snapshots anew" in record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.INFO), running(bench.config()):
        wait_for(lambda: len(tries) > 20)
        assert said() == 1
        monkeypatch.setattr("streamtrain.log.REPEAT_S", 0.1)
        wait_for(lambda: said() > 1)


def test_a_trainer_that_may_read_no_more_ends(guarded: GuardedKafka, tmp_path: Path) -> None:
    job = LiveJob(guarded, tmp_path, prefix="revoked")
    job.produce(300)
    settings = guarded.sasl("alice", PASSWORD)
    running = job.start("train", *[part for name in settings for part in ("--set", f"kafka.{name}={settings[name]}")])
    running.wait_event("published", rows=300)
    guarded.deny("alice", TOPIC, job.records, READ)
    assert running.finish(240) == 2, running.errors()
    assert "does not let this user in" in running.errors()
