"""The predictor process on a real broker: what it answers, with which snapshot, and exactly or at least once."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from functools import partial
from typing import Any

import confluent_kafka
import numpy as np
import pytest
from prediction_bench import PARTITIONS, Bench, running
from served_model import NUMBERS, ServedModel
from waiting import wait_for

from streamtrain.columns.formats import record_format
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.log import Reminder
from streamtrain.run.roles import predictor
from streamtrain.topics.predictions import Answer

DELIVERIES = ["exactly_once", "at_least_once"]
spawn = multiprocessing.get_context("spawn")


def predicted(answer: Answer) -> list[Any]:
    """Of the rows of a request, all of them good."""
    assert isinstance(answer.prediction, list)
    return [row["prediction"] for row in answer.prediction if isinstance(row, dict)]


@pytest.fixture
def bench(kafka: Any) -> Bench:
    return Bench(kafka.bootstrap, kafka.fresh_name("predict"))


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_answers_have_the_requests_key_headers_and_the_snapshots_names(bench: Bench, delivery: str) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    made = served.put()
    bench.ask({"a": 1.5, "b": -2}, "one", [("trace", b"7"), ("trace", b""), ("streamtrain-version", b"99")])
    bench.ask([{"a": 1, "b": 2}, [3, 4]], "many", partition=1)
    bench.ask([{"a": 1, "b": 2}], "one of many")
    bench.ask({"a": [1, 2, 3], "b": [4, 5, 6]}, "columns", partition=2)
    bench.ask([], "none")
    bench.flush()
    totals = predictor.answer(bench.config(delivery, until_end=True), threading.Event())
    answers = bench.answers()
    one = answers["one"]
    assert one.prediction == {"prediction": pytest.approx(served.probability(1, [1.5, -2]), rel=1e-6)}
    assert (one.version, one.digest, one.error) == (1, made.digest.hex(), None)
    assert {key: (answer.partition, answer.offset) for key, answer in answers.items()} == {
        "one": (0, 0), "many": (1, 0), "one of many": (0, 1), "columns": (2, 0), "none": (0, 2),
    }  # fmt: skip
    assert one.headers == (("trace", b"7"), ("trace", b""))
    expected = {
        "many": [[1, 2], [3, 4]], "one of many": [[1, 2]], "columns": [[1, 4], [2, 5], [3, 6]], "none": [],
    }  # fmt: skip
    for key, rows in expected.items():
        assert predicted(answers[key]) == pytest.approx([served.probability(1, row) for row in rows], rel=1e-6)
    assert (totals["requests"], totals["rows"], totals["errors"]) == (5, 7, 0)


@pytest.mark.full
def test_as_a_process_of_its_own(bench: Bench) -> None:
    """Started as the supervisor starts its own: the one contract of all roles."""
    ServedModel(bench.bootstrap, bench.job).put()
    bench.ask({"a": 1, "b": 2}, "one")
    bench.flush()
    document = {
        "process": "predictor", "label": "predictor", "parent": os.getpid(), "failpoints": "", "last_words": True,
        "logging": {}, "config": dataclasses.asdict(bench.config(until_end=True)),
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "streamtrain.run"]
    done = subprocess.run(command, input=json.dumps(document) + "\n", capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert [*bench.answers()] == ["one"]


def test_a_packed_record_of_one_row_is_answered_as_one_row(bench: Bench) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    served.put()
    rows = [[1.5, -2], [3, 4]]
    for count, key in enumerate(("none", "one", "two")):
        columns = {name: [row[at] for row in rows[:count]] for at, name in enumerate("ab")}
        bench.ask(record_format("packed").encode(served.schema.for_requests(), columns), key)
    bench.flush()
    predictor.answer(bench.config(format={"name": "packed"}, until_end=True), threading.Event())
    answers = {key: answer.prediction for key, answer in bench.answers().items()}
    expected = [{"prediction": pytest.approx(served.probability(1, row), rel=1e-6)} for row in rows]
    assert answers == {"none": [], "one": expected[0], "two": expected}


def test_a_bad_request_is_answered_with_its_reason(bench: Bench) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    served.put()
    bad = {
        "text": {"a": "n/a", "b": 1}, "missing": {"a": 1}, "broken": b"{", "empty": b"", "tombstone": None,
        "infinite": b'{"a": 1e999, "b": 1}',
    }  # fmt: skip
    for key, value in bad.items():
        bench.ask(value, key)
    bench.ask({"a": 1, "b": 1}, "good")
    bench.ask([{"a": 1, "b": 2}, {"a": None, "b": 2}], "second row")
    bench.flush()
    totals = predictor.answer(bench.config(until_end=True), threading.Event())
    headers = {(m.key or b"").decode(): dict(m.headers) for m in bench.messages()}
    answers = bench.answers()
    assert answers.keys() == {*bad, "good", "second row"} and answers["good"].error is None
    for at, key in enumerate(bad):
        error = answers[key].error
        assert error and answers[key].version == 1
        assert error.where == f"{bench.requests}[0]@{at}" and (answers[key].partition, answers[key].offset) == (0, at)
        assert headers[key]["streamtrain-error"] == f"{error.path}: {error.reason}".encode()
        assert "streamtrain-errors" not in headers[key]
    assert str(answers["text"].error) == f'{bench.requests}[0]@0 at $.a: expected number, got "n/a"'
    assert {name for name in headers["good"] if name.startswith("streamtrain-")} == {
        "streamtrain-version", "streamtrain-digest", "streamtrain-partition", "streamtrain-offset",
    }  # fmt: skip
    rows = answers["second row"]
    assert rows.error is None and rows.errors == 1 and headers["second row"]["streamtrain-errors"] == b"1"
    assert "streamtrain-error" not in headers["second row"]
    good, missing = rows.prediction  # type: ignore[misc]
    assert good == {"prediction": pytest.approx(served.probability(1, [1, 2]), rel=1e-6)}
    assert missing.path == "$[1].a" and missing.where == f"{bench.requests}[0]@7 row 1"
    assert [totals[name] for name in ("requests", "rows", "errors", "row_errors")] == [8, 2, 6, 7]


def test_requests_of_more_than_a_slot_or_an_answer_holds(bench: Bench) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    served.put()
    rows = np.random.default_rng(0).standard_normal((1000, 2)).round(3).tolist()
    bench.ask(rows[:3], "few")
    bench.ask(rows, "many")
    bench.ask([[0, 0]] * 35_000, "too many for one answer")
    no_room = "k" * 100
    bench.ask([[0, 0]] * 20_000, no_room, [("large", b"x" * 700_000)], partition=1)
    bench.flush()
    predictor.answer(bench.config(until_end=True), threading.Event())
    answers = bench.answers()
    got = predicted(answers["many"])
    assert got == pytest.approx([served.probability(1, row) for row in rows], rel=1e-5)
    assert predicted(answers["few"]) == got[:3]
    assert "send fewer rows" in str(answers["too many for one answer"].error)
    answer = answers[no_room]
    assert answer.key == no_room.encode() and answer.headers == () and "fits a message" in str(answer.error)
    assert (answer.partition, answer.offset, answer.prediction) == (1, 0, None)


def test_class_names_and_probabilities(bench: Bench) -> None:
    columns = {**NUMBERS, "y": {"role": "label", "classes": ["walk", 'say "hi"', "süß"]}}
    served = ServedModel(bench.bootstrap, bench.job, columns, loss="softmax_cross_entropy")
    served.put()
    bench.ask({"a": 0.5, "b": 1}, "k")
    bench.flush()
    predictor.answer(bench.config(until_end=True), threading.Event())
    exponents = np.exp(served.logits(1, [[0.5, 1]])[0])
    expected = dict(zip(["walk", 'say "hi"', "süß"], exponents / exponents.sum(), strict=True))
    got = bench.answers()["k"].prediction
    assert isinstance(got, dict)
    assert got["probabilities"] == pytest.approx(expected, rel=1e-5)
    assert got["prediction"] == max(expected, key=lambda name: expected[name])


def test_requests_wait_for_the_first_trained_snapshot_and_new_ones_are_taken(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    served.put(untrained=True)
    bench.ask({"a": 1, "b": 1}, "waits")
    bench.flush()
    with caplog.at_level("INFO", logger="streamtrain"), running(bench.config()) as counters:
        wait_for(lambda: "waiting for the first trained snapshot" in caplog.text)
        assert counters["requests"] == 0 and bench.answers() == {}
        for version in (2, 3):
            served.put()
            wait_for(lambda version=version: counters["version"] == version)
            bench.ask({"a": 1, "b": 1}, f"with {version}")
            bench.flush()
            wait_for(lambda version=version: counters["requests"] == version)
    answers = bench.answers()
    assert {key: answer.version for key, answer in answers.items()} == {"waits": 2, "with 2": 2, "with 3": 3}
    assert answers["with 3"].prediction == {"prediction": pytest.approx(served.probability(3, [1, 1]), rel=1e-6)}


def test_what_is_waited_for_is_said_again_while_there_is_no_topic(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictor, "Reminder", partial(Reminder, 0.2))
    assert f"{bench.job}.snapshots" not in Admin(bench.bootstrap).names()
    with caplog.at_level("INFO", logger="streamtrain"), running(bench.config()) as counters:
        wait_for(lambda: caplog.text.count(f"waiting for the first snapshot of {bench.job}") >= 2)
        ServedModel(bench.bootstrap, bench.job).put()
        wait_for(lambda: counters["version"] == 1)
        said = caplog.text.count("waiting for")
        bench.ask({"a": 1, "b": 1}, "waits")
        bench.flush()
        wait_for(lambda: counters["requests"] == 1)
    assert caplog.text.count("waiting for") == said


def test_one_snapshot_is_held_fast_when_asked_for(bench: Bench) -> None:
    served = ServedModel(bench.bootstrap, bench.job)
    for _ in range(3):
        served.put()
    assert predictor.answer(bench.config(until_end=True), threading.Event())["requests"] == 0, "of empty topics"
    bench.ask({"a": 1, "b": 1}, "k")
    bench.flush()
    predictor.answer(bench.config(until_end=True, snapshot=2), threading.Event())
    assert bench.answers()["k"].version == 2
    with pytest.raises(UserMistake, match="expected a version it holds"):
        predictor.answer(bench.config(until_end=True, snapshot=9), threading.Event())


def test_a_bad_kafka_setting_is_the_users_mistake(bench: Bench) -> None:
    config = bench.config(kafka_producer={"bootstrap.servers": bench.bootstrap, "nonsense": "1"})
    with pytest.raises(UserMistake, match="nonsense"):
        predictor.answer(config, threading.Event())


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_second_bounded_run_has_nothing_left_to_answer(bench: Bench, delivery: str) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    producer = confluent_kafka.Producer({"bootstrap.servers": bench.bootstrap, "transactional.id": bench.job})
    producer.init_transactions(240)
    for i in range(40):  # two requests and a control record behind them each time, in every partition
        producer.begin_transaction()
        producer.produce(bench.requests, b"[1, 2]", str(i), partition=i % PARTITIONS)
        producer.commit_transaction(240)
    for count in (40, 0):
        totals = predictor.answer(bench.config(delivery, until_end=True), threading.Event())
        assert totals["requests"] == count
    assert bench.counts().total() == 40


@pytest.mark.full
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_members_are_killed_join_and_leave_while_requests_come(bench: Bench, delivery: str) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    config, total = bench.config(delivery), 30_000
    stops = [spawn.Event() for _ in range(4)]
    members = [spawn.Process(target=predictor.answer, args=(config, stop)) for stop in stops]
    for member in members[:3]:
        member.start()
    for i in range(total):
        bench.ask([i, 1], str(i), partition=i % PARTITIONS)
        if i == total // 4:
            wait_for(lambda: bench.counts().total() > 1000)
            members[0].kill()
        if i == total // 2:
            members[3].start()
        if i == 3 * total // 4:
            stops[1].set()
            members[1].join(240)
            assert members[1].exitcode == 0
        if i % 500 == 0:
            bench.flush()
    bench.flush()
    predictor.answer(bench.config(delivery, until_end=True), threading.Event())
    for stop, member in zip(stops[2:], members[2:], strict=True):
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    counts = bench.counts()
    assert len(counts) == total
    if delivery == "exactly_once":
        assert counts.total() == total


def test_a_transaction_somebody_fences_is_done_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ServedModel(bench.bootstrap, bench.job).put()
    monkeypatch.setattr(predictor.uuid, "uuid4", lambda: "known")
    name, common = f"{bench.job}.predict.known", {"bootstrap.servers": bench.bootstrap}
    lanes = [{**common, "transactional.id": f"{name}.{lane}"} for lane in range(2)]
    with running(bench.config()) as counters:
        for i in range(6):
            for k in range(50):
                bench.ask([i, k], f"{i}.{k}", partition=k % PARTITIONS)
            bench.flush()
            wait_for(lambda i=i: counters["requests"] == 50 * (i + 1))
            for lane in lanes:
                confluent_kafka.Producer(lane).init_transactions(240)
        bench.ask([0, 0], "last")
        bench.flush()
        wait_for(lambda: counters["requests"] == 301)
        assert counters["rewinds"] > 0
    assert bench.counts().total() == len(bench.counts()) == 301


@pytest.mark.full
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_broker_that_dies_and_comes_back(private_kafka: Any, delivery: str) -> None:
    broker = private_kafka()
    bench = Bench(broker.bootstrap, "outage")
    ServedModel(bench.bootstrap, bench.job).put()
    with running(bench.config(delivery)) as counters:
        for i in range(2000):
            bench.ask([i, 1], str(i), partition=i % PARTITIONS)
        wait_for(lambda: counters["requests"] > 0)
        broker.kill()
        for i in range(2000, 4000):
            bench.ask([i, 1], str(i), partition=i % PARTITIONS)
        broker.start()
        bench.flush()
        counts = wait_for(lambda: len(found := bench.counts()) == 4000 and found)
    if delivery == "exactly_once":
        assert counts.total() == bench.counts().total() == 4000


def test_no_broker_is_said_at_once(bench: Bench) -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(KafkaUnreachable):
        predictor.answer(bench.config(kafka_consumer=nowhere, kafka_producer=nowhere), threading.Event())


def test_settings_come_from_the_job() -> None:
    job = Job.parse(
        """
        name = "flights"
        kafka.bootstrap.servers = "here:1"
        kafka.producer.linger.ms = 3
        topics.requests = "asked"
        records.format = "msgpack"
        predict.delivery = "at_least_once"
        [columns]
        a = { kind = "number" }
        y = { role = "label" }
        """
    )
    config = predictor.Config.of(job, snapshot=4)
    assert (config.requests, config.predictions, config.format) == ("asked", "flights.predictions", {"name": "msgpack"})
    assert (config.delivery, config.snapshot, config.until_end) == ("at_least_once", 4, False)
    producer = dict(predictor.producer_settings(config))
    assert producer["linger.ms"] == "3" and producer["enable.idempotence"] == "true"
    assert "transactional.id" not in producer
    assert dict(predictor.consumer_settings(config))["group.id"] == "flights.predict"
