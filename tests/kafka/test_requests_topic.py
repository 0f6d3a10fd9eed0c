"""A predictor's topics that are deleted, made again or too small for an answer: no request is lost or answered twice.

A predictor looks at its topic only every ten seconds, so the slow stories run at the same time.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from at_once import run_at_once
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from prediction_bench import PARTITIONS, Bench, running, wait_for
from served_model import ServedModel
from topic_changes import set_config

from streamtrain.errors import KafkaBroken, StreamtrainError, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish

DELIVERIES = ["exactly_once", "at_least_once"]


def served(kafka: Any, prefix: str) -> Bench:
    bench = Bench(kafka.bootstrap, kafka.fresh_name(prefix))
    ServedModel(bench.bootstrap, bench.job).put()
    return bench


def to_its_end(config: predictor.Config, report: Callable[[dict[str, int]], None] = lambda _: None) -> dict[str, int]:
    return predictor.answer(config, threading.Event(), report)


def delete(bench: Bench, name: str) -> None:
    client = AdminClient({"bootstrap.servers": bench.bootstrap})
    client.delete_topics([name])[name].result()
    wait_for(lambda: name not in Admin(bench.bootstrap).names())


def make(bench: Bench) -> None:
    Admin(bench.bootstrap).ensure([TopicWish("requests", bench.requests, PARTITIONS)])


def wait_for_answers(bench: Bench, keys: set[str]) -> None:
    wait_for(lambda: keys <= bench.answers().keys())


def ask(bench: Bench, name: str, count: int) -> set[str]:
    """Returns their keys. The producer knows the topic that there is now."""
    fresh = Bench(bench.bootstrap, bench.job)
    keys = [f"{name} {i}" for i in range(count)]
    for i, key in enumerate(keys):
        fresh.ask([i, 1], key, partition=i % PARTITIONS)
    fresh.flush()
    return set(keys)


def ask_one(bench: Bench, value: Any = (1, 1)) -> None:
    bench.ask(value, "one")
    bench.flush()


def make_again(bench: Bench, name: str, count: int) -> set[str]:
    delete(bench, bench.requests)
    make(bench)
    return ask(bench, name, count)


def answered_exactly_once(bench: Bench, count: int) -> None:
    """Also by who starts later."""
    keys = ask(bench, "old", 30)
    with running(bench.config()):
        wait_for_answers(bench, keys)
        for turn in range(2):
            keys |= make_again(bench, f"new {turn}", count)
            wait_for_answers(bench, keys)
    assert bench.counts().total() == len(keys)
    to_its_end(bench.config(until_end=True))
    assert bench.counts().total() == len(keys)


def late_answers_pass_over_no_request_of_the_next_topic(bench: Bench) -> None:
    late = {"bootstrap.servers": bench.bootstrap, "linger.ms": "29000"}  # until the predictor ends and waits for them
    ask(bench, "old", 30)
    with running(bench.config("at_least_once", kafka_producer=late)) as counters:
        wait_for(lambda: counters["requests"] == 30)
        delete(bench, bench.requests)
        make(bench)
        wait_for(lambda: counters["rewinds"] > 0)
    keys = ask(bench, "new", 12)
    to_its_end(bench.config("at_least_once", until_end=True))
    assert keys <= bench.answers().keys()


def what_was_answered_is_committed(bench: Bench, delivery: str) -> None:
    keys = ask(bench, "old", 30)
    with running(bench.config(delivery)) as counters:
        wait_for_answers(bench, keys)
        make_again(bench, "new", 6)
        wait_for(lambda: counters["rewinds"] > 0)
        last = ask(bench, "last", PARTITIONS)
        wait_for_answers(bench, last)
    assert to_its_end(bench.config(delivery, until_end=True))["requests"] == 0


def test_requests_of_a_topic_made_again_are_answered(kafka: Any) -> None:
    """With fewer and with more requests than the topic before had."""
    stories: dict[str, Callable[[Bench], None]] = {
        "answered exactly once, 6": partial(answered_exactly_once, count=6),
        "answered exactly once, 120": partial(answered_exactly_once, count=120),
        "late answers": late_answers_pass_over_no_request_of_the_next_topic,
        **{f"committed, {each}": partial(what_was_answered_is_committed, delivery=each) for each in DELIVERIES},
    }
    run_at_once({name: partial(story, served(kafka, "again")) for name, story in stories.items()})


def ends_when_its_requests_are_deleted(bench: Bench, again: bool) -> None:
    """Another member of the group holds all partitions meanwhile."""
    ask_one(bench)
    config = bench.config(until_end=True)
    common = {"bootstrap.servers": bench.bootstrap, "group.id": config.group}
    holder = Consumer({**common, "partition.assignment.strategy": "range,roundrobin"})
    given: list[int] = []
    holder.subscribe([bench.requests], on_assign=lambda _, parts: given.extend(part.partition for part in parts))
    wait_for(lambda: holder.poll(0.1) or len(given) == PARTITIONS)
    turns = 0

    def report(counters: dict[str, int]) -> None:
        nonlocal turns
        turns += counters["version"] > 0
        if turns == 3:
            delete(bench, bench.requests)
            if again:
                make(bench)

    with pytest.raises(UserMistake, match=f"{bench.requests}.*was deleted"):
        to_its_end(config, report)
    holder.close()


def ends_where_there_are_no_predictions(bench: Bench, delivery: str, **producer: str) -> None:
    ask_one(bench)
    delete(bench, bench.predictions)
    settings = {"bootstrap.servers": bench.bootstrap, **producer}
    with pytest.raises(UserMistake, match=f"{bench.predictions}.*was deleted"):
        to_its_end(bench.config(delivery, until_end=True, kafka_producer=settings))


def ends_at_an_answer_too_large_for_its_topic(bench: Bench, delivery: str) -> None:
    set_config(bench.bootstrap, bench.predictions, {"max.message.bytes": "2000"})
    ask_one(bench, [[1, 1]] * 2000)
    with pytest.raises(StreamtrainError, match=r"[Ll]arge") as refused:
        to_its_end(bench.config(delivery, until_end=True))
    assert refused.value.exit_code == 1


def test_a_bounded_run_ends_at_what_no_repetition_mends(kafka: Any) -> None:
    soon = {"topic.metadata.propagation.max.ms": "1000"}  # 30 s by default, in which a topic may still come
    stories: dict[str, Callable[[Bench], None]] = {}
    for each in DELIVERIES:
        stories[f"too large, {each}"] = partial(ends_at_an_answer_too_large_for_its_topic, delivery=each)
        stories[f"no predictions, {each}"] = partial(ends_where_there_are_no_predictions, delivery=each, **soon)
    for again in (False, True):
        name = f"requests deleted, {'made again' if again else 'gone'}"
        stories[name] = partial(ends_when_its_requests_are_deleted, again=again)
    run_at_once({name: partial(story, served(kafka, "ends")) for name, story in stories.items()})


@pytest.mark.full
def test_a_bounded_run_ends_where_there_are_no_predictions_by_the_usual_settings(kafka: Any) -> None:
    stories = {each: partial(ends_where_there_are_no_predictions, delivery=each) for each in DELIVERIES}
    run_at_once({name: partial(story, served(kafka, "usual")) for name, story in stories.items()})


def test_what_is_tried_again_is_said_once(kafka: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("seldom"))
    tries = itertools.count()

    def broken(self: SnapshotTopic) -> Any:
        raise KafkaBroken(f"broken {next(tries)} times")

    monkeypatch.setattr(SnapshotTopic, "newest_manifest", broken)
    monkeypatch.setattr("streamtrain.kafka.following.RETRY_S", 0.01)
    with caplog.at_level(logging.INFO), running(bench.config()):
        wait_for(lambda: next(tries) > 40)
    assert sum("following the snapshots anew" in record.getMessage() for record in caplog.records) == 1
