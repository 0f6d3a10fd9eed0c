"""A snapshot that is refused, however high its version, keeps nobody from the good ones that come after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from prediction_bench import Bench, running
from publisher import Publisher
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.chunks import Stored
from streamtrain.topics.topic import Message

MODEL = SmallModel.make()
HUGE = 2**62
ROW = {"dep_delay": 1, "distance": 2, "hour": 3, "carrier": "AA", "origin": "JFK"}


def malformed(publisher: Publisher, untrained: bool = False) -> None:
    """Whole, and no model."""
    publisher.write(publisher.make(HUGE, MODEL.payload(1), schema={"columns": ["abc"]}, untrained=untrained).messages)


def another_models(publisher: Publisher) -> None:
    """Whole, with columns and a model, and not that model's arrays."""
    other = SmallModel.make(layers=(9,))
    schema = MODEL.schema.to_dict()
    publisher.write(publisher.make(HUGE, other.payload(1), model_spec=MODEL.spec, schema=schema).messages)


def torn(publisher: Publisher) -> None:
    def without_chunks(messages: list[Message]) -> list[Message]:
        return messages[-1:]

    publisher.put_damaged(HUGE, MODEL.payload(1), without_chunks)


def fresh_and_malformed(publisher: Publisher) -> None:
    malformed(publisher, untrained=True)


REFUSED = [malformed, another_models, torn, fresh_and_malformed]
Refused = Callable[[Publisher], None]


@pytest.mark.parametrize("refused", REFUSED)
def test_a_live_model_goes_on(kafka: Any, caplog: Any, refused: Refused) -> None:
    job = kafka.fresh_name("huge")
    publisher = Publisher(kafka.bootstrap, job)
    MODEL.put(publisher, 1)
    with LiveModel(job, kafka.bootstrap) as model:
        model.wait_ready()
        refused(publisher)
        wait_for(lambda: "keeping snapshot 1" in caplog.text)
        MODEL.put(publisher, 2)
        wait_for(lambda: model.version == 2)


@pytest.mark.parametrize("refused", REFUSED)
def test_a_predictor_goes_on(kafka: Any, caplog: Any, refused: Refused) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("huge"))
    publisher = Publisher(kafka.bootstrap, bench.job)
    MODEL.put(publisher, 1)
    with running(bench.config()) as counters:
        wait_for(lambda: counters["version"] == 1)
        refused(publisher)
        wait_for(lambda: "keeping snapshot 1" in caplog.text)
        MODEL.put(publisher, 2)
        wait_for(lambda: counters["version"] == 2)
        bench.ask(ROW, "asked")
        bench.flush()
        wait_for(lambda: counters["requests"] == 1)
    assert bench.answers()["asked"].version == 2


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("newest_only", [True, False])
def test_whoever_follows_goes_on(kafka: Any, refused: Refused, newest_only: bool) -> None:
    job = kafka.fresh_name("huge")
    publisher = Publisher(kafka.bootstrap, job)
    MODEL.put(publisher, 1)
    followed = follow_snapshots(job, kafka.bootstrap, newest_only=newest_only)
    assert next(followed).version == 1
    refused(publisher)
    MODEL.put(publisher, 2)
    assert next(followed).version == 2


@pytest.mark.parametrize("refused", REFUSED)
def test_it_keeps_nobody_from_starting_on_what_came_after_it(kafka: Any, refused: Refused) -> None:
    job = kafka.fresh_name("huge")
    publisher = Publisher(kafka.bootstrap, job)
    refused(publisher)
    MODEL.put(publisher, 2)
    assert next(follow_snapshots(job, kafka.bootstrap)).version == 2


def following(topic: SnapshotTopic, publisher: Publisher) -> tuple[Follower[Stored], list[str]]:
    """A follower of the newest, at version 1; what it makes of 7 ends in a ValueError."""

    def seven_is_bad(stored: Stored) -> Stored:
        if stored.manifest.version == 7:
            raise ValueError("seven")
        return stored

    publisher.put(1, b"first")
    rejected: list[str] = []
    follower = Follower(topic, seven_is_bad, False, True, 0, rejected.append)
    assert [stored.manifest.version for stored in follower.start()] == [1]
    return follower, rejected


@pytest.mark.parametrize("versions", [(7, 2), (2, 7), (7, 7, 2), (3, 7, 2)])
def test_versions_that_wait_together_are_judged_before_they_pass_over_others(
    kafka: Any, versions: tuple[int, ...]
) -> None:
    job = kafka.fresh_name("huge")
    with SnapshotTopic(job, kafka.bootstrap) as topic:
        publisher = Publisher(kafka.bootstrap, job)
        follower, rejected = following(topic, publisher)
        publisher.write(message for version in versions for message in publisher.make(version, b"x").messages)
        given: list[int] = []

        def all_judged() -> bool:
            given.extend(stored.manifest.version for stored in follower.poll(0.05))
            return len(given) == 1 and len(rejected) == len(versions) - 1

        wait_for(all_judged)
    assert given == [next(version for version in versions if version != 7)]
    assert sum("seven" in text for text in rejected) == versions.count(7)
    assert sum("expected a version above 3, got 2" in text for text in rejected) == (versions == (3, 7, 2))


def test_a_good_one_of_a_higher_version_keeps_a_start_from_a_lower_one(kafka: Any) -> None:
    """Versions a reader sees never go down, whoever it was that saw them."""
    job = kafka.fresh_name("huge")
    publisher = Publisher(kafka.bootstrap, job)
    MODEL.put(publisher, HUGE)
    MODEL.put(publisher, 2, kept=())
    rejected: list[str] = []
    with SnapshotTopic(job, kafka.bootstrap) as topic:
        follower = Follower(topic, lambda stored: stored, False, False, 0, rejected.append)
        assert list(follower.start()) == []
    assert len(rejected) == 1 and f"expected a version above {HUGE}" in rejected[0]
