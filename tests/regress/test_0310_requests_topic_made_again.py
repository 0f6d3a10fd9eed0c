"""A requests topic deleted and made again at once: its requests are answered once, or at least once, and none is passed
over, though a predictor looks at the topic only every ten seconds."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from prediction_bench import PARTITIONS, Bench, running, wait_for
from served_model import ServedModel

from streamtrain.kafka.admin import Admin
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish

DELIVERIES = ["exactly_once", "at_least_once"]


@pytest.fixture
def bench(kafka: Any) -> Bench:
    return Bench(kafka.bootstrap, kafka.fresh_name("again"))


def delete(bench: Bench, name: str) -> None:
    client = AdminClient({"bootstrap.servers": bench.bootstrap})
    client.delete_topics([name])[name].result()
    wait_for(lambda: name not in Admin(bench.bootstrap).names())


def make(bench: Bench, key: str) -> None:
    Admin(bench.bootstrap).ensure([TopicWish(key, f"{bench.job}.{key}", PARTITIONS)])


def wait_for_answers(bench: Bench, keys: set[str]) -> None:
    wait_for(lambda: keys <= bench.answers().keys())


def ask(bench: Bench, name: str, count: int) -> set[str]:
    """Gives their keys. The producer knows the topic that there is now."""
    fresh = Bench(bench.bootstrap, bench.job)
    keys = [f"{name} {i}" for i in range(count)]
    for i, key in enumerate(keys):
        fresh.ask([i, 1], key, partition=i % PARTITIONS)
    fresh.flush()
    return set(keys)


def make_again(bench: Bench, name: str, count: int) -> set[str]:
    delete(bench, bench.requests)
    make(bench, "requests")
    return ask(bench, name, count)


@pytest.mark.parametrize("count", [6, 120])  # fewer and more than the topic before had
def test_its_requests_are_answered_exactly_once(bench: Bench, count: int) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    asked = ask(bench, "old", 30)
    with running(bench.config()):
        wait_for_answers(bench, asked)
        for turn in range(2):
            asked |= make_again(bench, f"new {turn}", count)
            wait_for_answers(bench, asked)
    assert bench.counts().total() == len(asked)
    predictor.answer(bench.config(until_end=True), threading.Event())
    assert bench.counts().total() == len(asked)


def test_answers_that_come_late_pass_over_no_request_of_the_next_topic(bench: Bench) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    held = {"bootstrap.servers": bench.bootstrap, "linger.ms": "29000"}  # until the predictor ends and waits for them
    ask(bench, "old", 30)
    with running(bench.config("at_least_once", kafka_producer=held)) as counters:
        wait_for(lambda: counters["requests"] == 30)
        delete(bench, bench.requests)
        make(bench, "requests")
        wait_for(lambda: counters["rewinds"] > 0)
    asked = ask(bench, "new", 12)
    predictor.answer(bench.config("at_least_once", until_end=True), threading.Event())
    assert asked <= bench.answers().keys()


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_was_answered_of_it_is_committed(bench: Bench, delivery: str) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    asked = ask(bench, "old", 30)
    with running(bench.config(delivery)) as counters:
        wait_for_answers(bench, asked)
        make_again(bench, "new", 6)
        wait_for(lambda: counters["rewinds"] > 0)
        last = ask(bench, "last", PARTITIONS)
        wait_for_answers(bench, last)
    assert predictor.answer(bench.config(delivery, until_end=True), threading.Event())["requests"] == 0

