"""A predictor whose topics change under it, and requests of every size: nothing is lost, nothing ends it."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from given_outputs import echo_scorer
from more_partitions import add_partitions
from prediction_bench import PARTITIONS, Bench, running
from served_model import ServedModel
from waiting import wait_for

from streamtrain.kafka.admin import Admin
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish

DELIVERIES = ["exactly_once", "at_least_once"]
spawn = multiprocessing.get_context("spawn")
SOON = {"topic.metadata.refresh.interval.ms": "500"}  # that a topic has changed is seen this soon, not after 10 s


@pytest.fixture
def bench(kafka: Any) -> Bench:
    return Bench(kafka.bootstrap, kafka.fresh_name("topics"))


def config_of(bench: Bench, delivery: str = "exactly_once") -> predictor.Config:
    config = bench.config(delivery)
    config.kafka_consumer.update(SOON)
    return config


def delete(bench: Bench, *names: str) -> None:
    client = AdminClient({"bootstrap.servers": bench.bootstrap})  # its futures fail when it is collected
    for future in client.delete_topics(list(names)).values():
        future.result()
    wait_for(lambda: not set(names) & set(Admin(bench.bootstrap).names()))


def make(bench: Bench, *keys: str) -> None:
    Admin(bench.bootstrap).ensure(TopicWish(key, f"{bench.job}.{key}", PARTITIONS) for key in keys)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_requests_in_partitions_added_later_are_answered(bench: Bench, delivery: str) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    with running(config_of(bench, delivery)) as counters:
        bench.ask([1, 1], "before")
        bench.flush()
        wait_for(lambda: counters["requests"] == 1)
        add_partitions(bench.bootstrap, bench.requests, PARTITIONS + 2)
        fresh = Bench(bench.bootstrap, bench.job)  # a producer that knows them
        for partition in range(PARTITIONS + 2):
            fresh.ask([partition, 1], f"after {partition}", partition=partition)
        fresh.flush()
        wait_for(lambda: len(bench.answers()) == PARTITIONS + 3)
    assert bench.counts().total() == PARTITIONS + 3


@pytest.mark.parametrize("count", [6, 120])  # fewer and more than the topic before had
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_requests_topic_made_anew_is_read_from_its_beginning(bench: Bench, delivery: str, count: int) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    with running(config_of(bench, delivery)) as counters:
        for i in range(30):
            bench.ask([i, 1], f"old {i}", partition=i % PARTITIONS)
        bench.flush()
        wait_for(lambda: counters["requests"] == 30)
        delete(bench, bench.requests)
        make(bench, "requests")
        fresh = Bench(bench.bootstrap, bench.job)
        for i in range(count):
            fresh.ask([i, 1], f"new {i}", partition=i % PARTITIONS)
        fresh.flush()
        wait_for(lambda: {f"new {i}" for i in range(count)} <= bench.answers().keys())


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_while_there_is_no_predictions_topic_requests_wait(bench: Bench, delivery: str) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    with running(config_of(bench, delivery)) as counters:
        bench.ask([1, 1], "old")
        bench.flush()
        wait_for(lambda: counters["requests"] == 1)
        delete(bench, bench.predictions)
        bench.ask([2, 1], "waits")
        bench.flush()
        make(bench, "predictions")
        wait_for(lambda: "waits" in bench.answers())


def test_without_its_snapshots_topic_a_predictor_goes_on(bench: Bench) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    served.put()
    with running(config_of(bench)) as counters:
        wait_for(lambda: counters["version"] == 1)
        delete(bench, f"{bench.job}.snapshots")
        for i in range(20):
            bench.ask([i, 1], str(i))
            bench.flush()
            wait_for(lambda i=i: counters["requests"] == i + 1)
    assert {answer.version for answer in bench.answers().values()} == {1}


def test_answers_are_written_in_parts_of_bounded_size() -> None:
    requests: list[bytes | None] = [b"[" + b",".join([b"[]"] * 20_000) + b"]", *[b"[[1],[2]]"] * 5] * 60
    scorer = echo_scorer({"a": {}}, [])
    parts = []
    while sum(map(len, parts)) < len(requests):
        parts.append(scorer.score("asked", requests[sum(map(len, parts)) :]))
        assert parts[-1] and sum(len(body) for body, *_ in parts[-1]) < 20_000_000
    assert len(parts) > 2
    assert [rows for part in parts for _, _, rows, _ in part] == [0, 2, 2, 2, 2, 2] * 60


def resident_peak(pid: int) -> int:
    """Bytes: most that a process has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_empty_and_huge_requests_are_answered_in_bounded_memory(bench: Bench, delivery: str) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    served.put()
    stop = spawn.Event()
    bench.ask({"a": 1, "b": 1}, "first")
    kinds: dict[str, Any] = {
        "many bad": b"[" + b",".join([b"[]"] * 8_000) + b"]",  # 100 bytes of error for each 3
        "too many": json.dumps([[0, 0]] * 60_000).encode(),
        "many": json.dumps([[1, 1]] * 30_000).encode(),
        "no rows": b"[]", "empty": b"", "tombstone": None, "one long": b'{"x":"' + b"x" * 900_000 + b'","a":1,"b":1}',
        "deep": b"[" * 400_000, "nothing": b"{}",
    }  # fmt: skip
    member = spawn.Process(target=predictor.answer, args=(bench.config(delivery), stop))
    member.start()
    try:
        wait_for(lambda: bench.counts().total() == 1)
        before = resident_peak(member.pid or 0)
        for turn in range(12):
            for at, (kind, value) in enumerate(kinds.items()):
                bench.ask(value, f"{kind} {turn}", partition=at % PARTITIONS)
            bench.flush()
        wait_for(lambda: bench.counts().total() >= 12 * len(kinds) + 1, 120)
        grown = resident_peak(member.pid or 0) - before
    finally:
        stop.set()
        member.join(240)
        member.kill()
    assert bench.counts().total() == 12 * len(kinds) + 1
    assert grown < 250e6, f"{grown / 1e6:.0f} MB"
    answers = bench.answers()
    assert len(answers["many 3"].prediction or ()) == 30_000 and answers["many 3"].errors == 0
    assert answers["no rows 0"].prediction == [] and answers["one long 0"].error is None
    for kind in ("too many", "empty", "tombstone", "deep", "nothing"):
        assert answers[f"{kind} 11"].error is not None and answers[f"{kind} 11"].prediction is None


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize(("committed_with", "first"), [("of a topic before", 0), ("its own id", 6), ("", 6)])
def test_offsets_of_a_topic_deleted_before_count_for_nothing(
    bench: Bench, delivery: str, committed_with: str, first: int
) -> None:
    """Committed late they would pass over requests; with no id they are somebody's reset, which holds."""
    ServedModel(bench.bootstrap, bench.job).put()
    for i in range(12):
        bench.ask([i, 1], f"{i}", partition=0)
    bench.flush()
    config = config_of(bench, delivery)
    if committed_with == "its own id":
        committed_with = topic_id(bench)
    consumer = Consumer({"bootstrap.servers": bench.bootstrap, "group.id": config.group})
    consumer.commit(offsets=[TopicPartition(bench.requests, 0, 6, committed_with)], asynchronous=False)
    consumer.close()
    with running(config) as counters:
        wait_for(lambda: "11" in bench.answers())
    assert bench.answers().keys() == {str(i) for i in range(first, 12)}
    assert counters["requests"] == 12 - first
    with running(config) as counters:  # goes on where the first one ended
        bench.ask([12, 1], "12", partition=0)
        bench.flush()
        wait_for(lambda: "12" in bench.answers())
    assert counters["requests"] == 1


def topic_id(bench: Bench) -> str:
    state = Admin(bench.bootstrap).describe([bench.requests])[bench.requests]
    assert state is not None
    return state.topic_id
