"""A Kafka that does not let everybody in: it says in its own words what it refuses, and whoever asked ends.

All tests share one such Kafka. No repetition mends a refusal, so a command ends with exit code 2.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from at_once import run_at_once
from confluent_kafka.admin import AclOperation, ResourceType
from guarded_kafka import PASSWORD, GuardedKafka
from prediction_bench import Bench
from served_model import ServedModel
from waiting import wait_for

from streamtrain.background import in_background
from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.errors import KafkaDenied, KafkaSettling
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish
from tests.e2e import threaded
from tests.e2e.harness import LiveJob

Settings = dict[str, str]
DELIVERIES = ["exactly_once", "at_least_once"]
READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
RIGHTS = {
    "requests": (TOPIC, "requests", READ), "group": (ResourceType.GROUP, "predict", READ),
    "predictions": (TOPIC, "predictions", WRITE), "id": (ResourceType.TRANSACTIONAL_ID, "predict", WRITE),
}  # fmt: skip
MISSING = [  # the last of at_least_once is no right that it uses
    (delivery, right, when)
    for delivery in DELIVERIES for right in RIGHTS for when in ("before", "while")
    if (delivery, right) != ("at_least_once", "id")
]  # fmt: skip


def ask_admin(settings: Settings) -> None:
    Admin(settings["bootstrap.servers"], settings).describe(["job.records"])


def ask_snapshots(settings: Settings) -> None:
    with SnapshotTopic("job", settings["bootstrap.servers"], settings) as topic:
        topic.newest_manifest()


def ask_control(settings: Settings) -> None:
    with ControlTopic(settings, "job.control") as topic:
        topic.look()


def ask_natively(settings: Settings) -> None:
    with KafkaConsumer.open(Purpose.INGEST, settings) as consumer:
        consumer.partition_count("job.records", 8)


CLIENTS = [ask_admin, ask_snapshots, ask_control, ask_natively]


@pytest.fixture(scope="module")
def job(guarded: GuardedKafka, tmp_path_factory: pytest.TempPathFactory) -> LiveJob:
    made = LiveJob(guarded, tmp_path_factory.mktemp("job"))
    made.produce(300)
    return made


def test_who_is_not_let_in_reads_why(guarded: GuardedKafka, job: LiveJob) -> None:
    ways = {
        "PLAIN": (guarded.sasl("alice", "wrong"), "[Aa]uthentication"),
        "SCRAM-SHA-256": (guarded.sasl("alice", "wrong", "SCRAM-SHA-256"), "[Aa]uthentication"),
        "TLS": (guarded.tls(guarded.stranger), "certificate verify failed"),
        "right": (guarded.sasl("mallory", PASSWORD), "[Aa]uthoriz"),
    }

    def check(way: str, ask: Callable[[Settings], None]) -> None:
        settings, words = ways[way]
        with pytest.raises(KafkaDenied, match=words) as refused:
            ask(settings)
        assert refused.value.exit_code == 2 and settings["bootstrap.servers"] in str(refused.value)

    cases = [
        *(("PLAIN", ask) for ask in CLIENTS), ("SCRAM-SHA-256", ask_admin), ("TLS", ask_admin), ("TLS", ask_natively),
        ("right", ask_admin), ("right", ask_snapshots),
    ]  # fmt: skip
    run_at_once({f"{way}, {ask.__name__}": partial(check, way, ask) for way, ask in cases})


def test_who_is_let_in_gets_answers(guarded: GuardedKafka, job: LiveJob) -> None:
    """TLS alone gives no name: rights are the super user's here."""
    for ask in CLIENTS:
        ask(guarded.sasl("alice", PASSWORD))
        ask(guarded.sasl("alice", PASSWORD, "SCRAM-SHA-256"))
        ask(guarded.tls(guarded.authority))


def sets(settings: Settings) -> list[str]:
    return [f"kafka.{name}={value}" for name, value in settings.items()]


def test_train_says_so_and_ends_with_2(guarded: GuardedKafka, job: LiveJob) -> None:
    flags = [part for each in sets(guarded.sasl("alice", "wrong")) for part in ("--set", each)]
    refused = job.here("train", "--until-end", *flags)
    assert refused.returncode == 2 and "does not let this user in" in refused.stderr, refused.stderr
    trained = threaded.trained(job.path, *sets(guarded.sasl("alice", PASSWORD)))
    assert trained.code == 0, trained.errors


def test_a_trainer_that_may_read_no_more_ends(guarded: GuardedKafka, tmp_path: Path) -> None:
    job = LiveJob(guarded, tmp_path, prefix="revoked")
    job.produce(300)
    running = threaded.Run(job.path, sets(guarded.sasl("alice", PASSWORD)))
    running.wait_event("published", rows=300)
    guarded.deny("alice", TOPIC, job.records, READ)
    assert running.finish() == 2, running.errors
    assert any("does not let this user in" in error for error in running.errors), running.errors


def test_a_reader_of_the_snapshots_follows_them_with_that_right_alone(guarded: GuardedKafka) -> None:
    """Control, which names hosts, is not read, and nobody joins the group that a reader names for librdkafka's sake."""
    job = "followed"
    served = ServedModel(guarded.bootstrap, job)
    served.put()
    Admin(guarded.bootstrap).ensure([TopicWish("control", f"{job}.control", 1)])
    guarded.set_password("bob", PASSWORD)
    guarded.allow("bob", TOPIC, f"{job}.snapshots", READ)
    kafka = guarded.sasl("bob", PASSWORD, "SCRAM-SHA-256")
    bootstrap = kafka.pop("bootstrap.servers")
    with LiveModel(job, bootstrap=bootstrap, kafka=kafka) as model:
        model.wait_ready(120)
        served.put()
        wait_for(lambda: model.version == 2)
        assert model.error is None
    followed = follow_snapshots(job, bootstrap=bootstrap, kafka=kafka)
    assert next(followed).version == 2
    followed.close()
    everything = {**kafka, "bootstrap.servers": bootstrap}
    with ControlTopic(everything, f"{job}.control") as control, pytest.raises((KafkaDenied, KafkaSettling)):
        control.look()


def ask(bench: Bench, key: str) -> None:
    bench.ask((1, 1), key)
    bench.flush()


def end_of_predictor(bench: Bench, settings: Settings, delivery: str, change: Callable[[], None] | None) -> Exception:
    """What ends a predictor with these settings, which is asked on and on; `change` follows its first answer."""
    config = bench.config(delivery)
    config.kafka_consumer.update(settings)
    config = predictor.Config(**{**vars(config), "kafka_producer": settings})
    counters, stop = {"requests": 0}, threading.Event()
    ended = in_background(lambda: predictor.answer(config, stop, counters.update), name=f"predictor of {bench.job}")
    try:
        if change is not None:
            ask(bench, "first")
            wait_for(lambda: counters["requests"] == 1 or ended.done())
            change()
        numbers = count()
        wait_for(lambda: ended.done() or ask(bench, str(next(numbers))))
    finally:
        stop.set()
    error = ended.exception(60)
    assert isinstance(error, Exception), f"{bench.job} ended well"
    return error


def served(bootstrap: str, job: str) -> Bench:
    bench = Bench(bootstrap, job)
    ServedModel(bootstrap, job).put()
    return bench


def test_a_missing_right_ends_a_predictor(guarded: GuardedKafka) -> None:
    """Each right that it uses, taken away before its start and while it answers."""

    def check(name: str, delivery: str, right: str, when: str) -> None:
        kind, suffix, operation = RIGHTS[right]
        bench = served(guarded.bootstrap, name)
        deny = partial(guarded.deny, "alice", kind, f"{name}.{suffix}", operation)
        if when == "before":
            deny()
        settings = guarded.sasl("alice", PASSWORD)
        error = end_of_predictor(bench, settings, delivery, deny if when == "while" else None)
        assert isinstance(error, KafkaDenied) and error.exit_code == 2 and re.search("[Aa]uthoriz", str(error)), error

    names = {f"{right}.{delivery}.{when}": (delivery, right, when) for delivery, right, when in MISSING}
    run_at_once({name: partial(check, name, *case) for name, case in names.items()})


@pytest.mark.parametrize("when", ["before", pytest.param("while", marks=pytest.mark.full)])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_password_that_holds_no_more_ends_a_predictor(guarded: GuardedKafka, delivery: str, when: str) -> None:
    """While it answers it meets a new password when it comes back to a broker that was away."""
    bench = served(guarded.bootstrap, f"password.{delivery}.{when}")
    guarded.set_password("alice", "for now" if when == "while" else PASSWORD)
    settings = guarded.sasl("alice", "for now", "SCRAM-SHA-256")

    def change() -> None:
        guarded.set_password("alice", PASSWORD)
        guarded.broker.kill()
        guarded.broker.start()

    error = end_of_predictor(bench, settings, delivery, change if when == "while" else None)
    assert isinstance(error, KafkaDenied) and re.search("[Aa]uthentication", str(error)), error
