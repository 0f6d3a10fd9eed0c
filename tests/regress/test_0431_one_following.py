"""LiveModel and the predictor follow snapshots by one rule: what they have stays, a broken client is made anew."""

from __future__ import annotations

from typing import Any

import pytest
from prediction_bench import Bench, running
from publisher import Publisher
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import KafkaBroken, KafkaSettling
from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshots import SnapshotTopic

MODEL = SmallModel.make()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtrain.kafka.following.RETRY_S", 0.01)


@pytest.mark.parametrize("failure", [KafkaBroken("fatal"), OSError("of any kind")])
def test_a_live_model_follows_on_and_a_broken_client_is_made_anew(
    kafka: Any, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    job = kafka.fresh_name("following")
    MODEL.put(Publisher(kafka.bootstrap, job), 1)
    failures = [failure]
    poll = Follower.poll

    def failing(self: Follower[Any], timeout_s: float) -> Any:
        if failures:
            raise failures.pop()
        return poll(self, timeout_s)

    monkeypatch.setattr(Follower, "poll", failing)
    with LiveModel(job, kafka.bootstrap) as model:
        model.wait_ready(120)
        wait_for(lambda: not failures)
        MODEL.put(Publisher(kafka.bootstrap, job), 2)
        wait_for(lambda: model.version == 2)
        assert model._topic.renewals == 1 + isinstance(failure, KafkaBroken)


@pytest.mark.parametrize("failure", [KafkaSettling("no leader"), KafkaBroken("fatal")])
def test_a_predictor_without_a_model_waits_for_what_passes(
    kafka: Any, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("following"))
    ServedModel(kafka.bootstrap, bench.job).put()
    newest, failures = SnapshotTopic.newest_manifest, [failure, failure]

    def failing(self: SnapshotTopic) -> Any:
        if failures:
            raise failures.pop()
        return newest(self)

    monkeypatch.setattr(SnapshotTopic, "newest_manifest", failing)
    with running(bench.config()) as counters:
        wait_for(lambda: counters["version"] == 1)
    assert not failures


def test_what_was_given_is_not_given_again(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that is followed anew is made ready once: LiveModel has it."""
    job = kafka.fresh_name("following")
    MODEL.put(Publisher(kafka.bootstrap, job), 1, untrained=True)
    prepared, failures = [], [KafkaSettling("no leader")]
    make, poll = LiveModel._prepared, Follower.poll

    def counted(self: LiveModel, stored: Any) -> Any:
        prepared.append(stored.manifest.version)
        return make(self, stored)

    def failing(self: Follower[Any], timeout_s: float) -> Any:
        if failures:
            raise failures.pop()
        return poll(self, timeout_s)

    monkeypatch.setattr(LiveModel, "_prepared", counted)
    monkeypatch.setattr(Follower, "poll", failing)
    with LiveModel(job, kafka.bootstrap) as model:
        wait_for(lambda: not failures and model.connected)
        MODEL.put(Publisher(kafka.bootstrap, job), 2)
        model.wait_ready(120)
    assert prepared == [1, 2]
