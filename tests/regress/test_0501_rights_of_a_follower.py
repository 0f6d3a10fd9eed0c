"""Whoever follows a model needs one right: to read its snapshots. Control, which names hosts, is not read, and nobody
joins the group that a reader names for librdkafka's sake: that it may not be used ended readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from guarded_kafka import PASSWORD, GuardedKafka
from served_model import ServedModel
from waiting import wait_for

from streamtrain.broker import Broker, start_broker
from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.errors import KafkaDenied, KafkaSettling
from streamtrain.kafka.admin import Admin, TopicWish
from streamtrain.kafka.control import ControlTopic
from tests.conftest import kafka_home

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    started: list[Broker] = []

    def start(**settings: Any) -> Broker:
        started.append(start_broker(kafka_home=kafka_home(), fast_start=True, **settings))
        return started[-1]

    yield GuardedKafka(start, tmp_path_factory.mktemp("guarded"))
    for broker in started:
        broker.kill()


def test_a_reader_of_the_snapshots_follows(guarded: GuardedKafka) -> None:
    job = "followed"
    served = ServedModel(guarded.bootstrap, job)
    served.put()
    Admin(guarded.bootstrap).ensure([TopicWish("control", f"{job}.control", 1)])
    guarded.set_password("bob", PASSWORD)
    guarded.allow("bob", ResourceType.TOPIC, f"{job}.snapshots", AclOperation.READ)
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
