"""What is read from Kafka may fail in any way: the threads that follow it go on, and nothing is lost by one failure."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from prediction_bench import Bench, running
from publisher import Publisher
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.errors import CheckFailed, KafkaBroken, KafkaDenied, KafkaSettling, KafkaUnreachable
from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.run.watch import Watch
from streamtrain.topics.control import Control, RunEntry
from streamtrain.topics.manifest import Run

MODEL = SmallModel.make()


@pytest.mark.parametrize("failure", [CheckFailed("no entry"), KafkaDenied("no right"), KafkaBroken("fatal")])
def test_a_watch_looks_again(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtrain.run.watch.EVERY_S", 0.01)
    replacement = RunEntry(Run(2, "b" * 32), "job", "host", 1, 1, "build")
    looks = iter([failure])

    def look() -> Control:
        for error in looks:
            raise error
        return Control({2: replacement})

    watch = Watch(Run(1, "a" * 32), look)
    wait_for(lambda: watch.replaced_by == replacement)


@pytest.mark.parametrize("newest_only", [True, False])
@pytest.mark.parametrize("later", [(), (3, 4)], ids=["the last", "two follow"])
def test_a_snapshot_that_could_not_be_fetched_is_asked_for_again(
    kafka: Any, monkeypatch: pytest.MonkeyPatch, newest_only: bool, later: tuple[int, ...]
) -> None:
    """No other may ever come: the trainer's last. Who follows all of them gets it before those that come after it."""
    job = kafka.fresh_name("again")
    publisher = Publisher(kafka.bootstrap, job)
    MODEL.put(publisher, 1)
    rejected: list[str] = []
    with SnapshotTopic(job, kafka.bootstrap) as topic:
        follower = Follower(topic, lambda stored: stored, False, newest_only, 0, rejected.append)
        assert [stored.manifest.version for stored in follower.start()] == [1]
        load, failures = topic.load, [KafkaUnreachable("away"), KafkaUnreachable("away")]

        def failing(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return load(*arguments)

        monkeypatch.setattr(topic, "load", failing)
        monkeypatch.setattr(follower, "_keep", lambda read: None)  # as where they are too many to keep
        for version in (2, *later):
            MODEL.put(publisher, version)
        given: list[int] = []

        def last_came() -> bool:
            given.extend(stored.manifest.version for stored in follower.poll(0.05))
            return (2, *later)[-1] in given

        wait_for(last_came)
    assert not failures and not rejected
    assert given == sorted(given) if newest_only else given == [2, *later]


def test_a_live_model_that_may_not_read_says_it_once(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    looks: list[int] = []

    def denied(self: Follower) -> Any:
        looks.append(1)
        raise KafkaDenied("snapshots: not authorised")

    monkeypatch.setattr(Follower, "start", denied)
    monkeypatch.setattr("streamtrain.kafka.following.RETRY_S", 0.01)
    with caplog.at_level(logging.INFO), LiveModel("job", bootstrap="127.0.0.1:9") as model:
        wait_for(lambda: len(looks) > 5)
        assert isinstance(model.error, KafkaDenied)
    ours = [record for record in caplog.records if "not authorised" in record.getMessage()]
    assert len(ours) == 1 and ours[0].exc_info is None


def test_a_broker_that_is_settling_is_waited_for(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = kafka.fresh_name("settling")
    MODEL.put(Publisher(kafka.bootstrap, job), 1)
    newest, failures = SnapshotTopic.newest_manifest, [KafkaSettling("no leader"), KafkaSettling("no leader")]

    def settling(self: SnapshotTopic) -> Any:
        if failures:
            raise failures.pop()
        return newest(self)

    monkeypatch.setattr(SnapshotTopic, "newest_manifest", settling)
    assert next(follow_snapshots(job, bootstrap=kafka.bootstrap)).version == 1 and not failures


@pytest.mark.parametrize("failure", [KafkaBroken("fatal"), KafkaDenied("no right"), KafkaUnreachable("away")])
def test_a_predictor_keeps_its_model_and_follows_on(
    kafka: Any, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("keeps"))
    served = ServedModel(kafka.bootstrap, bench.job)
    served.put()
    failures = [failure]
    poll = Follower.poll

    def failing(self: Follower, timeout_s: float) -> Any:
        if self._version and failures:
            raise failures.pop()
        return poll(self, timeout_s)

    monkeypatch.setattr(Follower, "poll", failing)
    with running(bench.config()) as counters:
        wait_for(lambda: counters["version"] == 1 and not failures)
        served.put()
        wait_for(lambda: counters["version"] == 2)
