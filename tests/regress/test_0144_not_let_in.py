"""A wrong password, an unknown certificate or a missing right is said in its own words, with exit code 2."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from guarded_kafka import PASSWORD, GuardedKafka

from streamtrain.errors import KafkaDenied
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.snapshots import SnapshotTopic
from tests.e2e.harness import LiveJob

pytestmark = pytest.mark.kafka

Settings = dict[str, str]


def asked_by_admin(settings: Settings) -> None:
    Admin(settings["bootstrap.servers"], settings).describe(["job.records"])


def asked_by_snapshots(settings: Settings) -> None:
    with SnapshotTopic("job", settings["bootstrap.servers"], settings) as topic:
        topic.newest_manifest()


def asked_by_control(settings: Settings) -> None:
    with ControlTopic(settings, "job.control") as topic:
        topic.look()


def asked_natively(settings: Settings) -> None:
    with KafkaConsumer.open(Purpose.INGEST, settings) as consumer:
        consumer.partition_count("job.records", 8)


ASKED = [asked_by_admin, asked_by_snapshots, asked_by_control, asked_natively]


@pytest.fixture(scope="module")
def job(guarded: GuardedKafka, tmp_path_factory: pytest.TempPathFactory) -> LiveJob:
    made = LiveJob(guarded, tmp_path_factory.mktemp("job"))
    made.produce(300)
    return made


@pytest.mark.parametrize(
    ("way", "ask"),
    [
        *(("PLAIN", ask) for ask in ASKED), ("SCRAM-SHA-256", asked_by_admin), ("TLS", asked_by_admin),
        ("TLS", asked_natively), ("right", asked_by_admin), ("right", asked_by_snapshots),
    ],
)  # fmt: skip
def test_who_is_not_let_in_is_told_why(
    guarded: GuardedKafka, job: LiveJob, way: str, ask: Callable[[Settings], None]
) -> None:
    settings, words = {
        "PLAIN": (guarded.sasl("alice", "wrong"), "[Aa]uthentication"),
        "SCRAM-SHA-256": (guarded.sasl("alice", "wrong", "SCRAM-SHA-256"), "[Aa]uthentication"),
        "TLS": (guarded.tls(guarded.stranger), "certificate verify failed"),
        "right": (guarded.sasl("mallory", PASSWORD), "[Aa]uthoriz"),
    }[way]
    with pytest.raises(KafkaDenied, match=words) as refused:
        ask(settings)
    assert refused.value.exit_code == 2 and settings["bootstrap.servers"] in str(refused.value)


@pytest.mark.parametrize("ask", ASKED)
def test_who_is_let_in_is_answered(guarded: GuardedKafka, job: LiveJob, ask: Callable[[Settings], None]) -> None:
    ask(guarded.sasl("alice", PASSWORD))
    ask(guarded.sasl("alice", PASSWORD, "SCRAM-SHA-256"))


@pytest.mark.parametrize("ask", ASKED)
def test_a_known_certificate_is_taken(guarded: GuardedKafka, job: LiveJob, ask: Callable[[Settings], None]) -> None:
    """TLS alone gives no name: rights are the super user's here."""
    ask(guarded.tls(guarded.authority))


def test_train_says_so_and_ends_with_2(guarded: GuardedKafka, job: LiveJob) -> None:
    def flags(settings: Settings) -> list[str]:
        pairs = [part for name, value in settings.items() for part in ("--set", f"kafka.{name}={value}")]
        return ["train", "--until-end", *pairs]

    refused = job.command(*flags(guarded.sasl("alice", "wrong")))
    assert refused.returncode == 2 and "does not let this user in" in refused.stderr, refused.stderr
    trained = job.command(*flags(guarded.sasl("alice", PASSWORD)))
    assert trained.returncode == 0, trained.stderr
