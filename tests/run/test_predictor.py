"""The predictor process on a real broker: what it answers, with which snapshot, and exactly or at least once."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition
from failing_librdkafka import run_predictor
from given_outputs import echo_scorer
from prediction_bench import PARTITIONS, Bench, running
from served_model import NUMBERS, ServedModel
from topic_changes import add_partitions
from waiting import wait_for

from streamtrain import _native
from streamtrain.columns.served import Served
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.job import Job
from streamtrain.kafka import library
from streamtrain.kafka.admin import Admin
from streamtrain.log import Reminder
from streamtrain.run.roles import predictor
from streamtrain.topics.predictions import Answer
from streamtrain.topics.topic import TopicWish
from tests.e2e.test_gaps import delete
from tests.oracles.records import oracle
from tests.run.conftest import DELIVERIES, answer_all, ask

spawn = multiprocessing.get_context("spawn")


def predicted(answer: Answer) -> list[Any]:
    """Returns the predictions of a request's rows, all of them good."""
    assert isinstance(answer.prediction, list)
    return [row["prediction"] for row in answer.prediction if isinstance(row, dict)]


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_answers_have_the_requests_key_headers_and_the_snapshots_names(
    bench: Bench, model: ServedModel, delivery: str
) -> None:
    publication = model.put()
    bench.ask({"a": 1.5, "b": -2}, "one", [("trace", b"7"), ("trace", b""), ("streamtrain-version", b"99")])
    bench.ask([{"a": 1, "b": 2}, [3, 4]], "many", partition=1)
    bench.ask([{"a": 1, "b": 2}], "one of many")
    bench.ask({"a": [1, 2, 3], "b": [4, 5, 6]}, "columns", partition=2)
    bench.ask([], "none")
    totals = answer_all(bench, delivery)
    answers = bench.answers()
    one = answers["one"]
    assert one.prediction == {"prediction": pytest.approx(model.probability(1, [1.5, -2]), rel=1e-6)}
    assert (one.version, one.digest, one.error) == (1, publication.digest.hex(), None)
    assert {key: (answer.partition, answer.offset) for key, answer in answers.items()} == {
        "one": (0, 0), "many": (1, 0), "one of many": (0, 1), "columns": (2, 0), "none": (0, 2),
    }  # fmt: skip
    assert one.headers == (("trace", b"7"), ("trace", b""))
    expected = {"many": [[1, 2], [3, 4]], "one of many": [[1, 2]], "columns": [[1, 4], [2, 5], [3, 6]], "none": []}
    for key, rows in expected.items():
        assert predicted(answers[key]) == pytest.approx([model.probability(1, row) for row in rows], rel=1e-6)
    assert (totals["requests"], totals["rows"], totals["errors"]) == (5, 7, 0)


@pytest.mark.full
def test_as_a_process_of_its_own(bench: Bench, served: ServedModel) -> None:
    """Started as the supervisor starts its own: the one contract of all roles."""
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


def test_a_packed_record_of_one_row_is_answered_as_one_row(bench: Bench, served: ServedModel) -> None:
    rows = [[1.5, -2], [3, 4]]
    for count, key in enumerate(("none", "one", "two")):
        columns = {name: [row[at] for row in rows[:count]] for at, name in enumerate("ab")}
        bench.ask(oracle("packed").encode(served.schema.for_requests(), columns), key)
    answer_all(bench, format={"name": "packed"})
    answers = {key: answer.prediction for key, answer in bench.answers().items()}
    expected = [{"prediction": pytest.approx(served.probability(1, row), rel=1e-6)} for row in rows]
    assert answers == {"none": [], "one": expected[0], "two": expected}


def test_a_bad_request_is_answered_with_its_reason(bench: Bench, served: ServedModel) -> None:
    bad = {
        "text": {"a": "bad", "b": 1}, "missing": {"a": 1}, "broken": b"{", "empty": b"", "tombstone": None,
        "infinite": b'{"a": 1e999, "b": 1}',
    }  # fmt: skip
    for key, value in bad.items():
        bench.ask(value, key)
    bench.ask({"a": 1, "b": 1}, "good")
    bench.ask([{"a": 1, "b": 2}, {"a": None, "b": 2}], "second row")
    totals = answer_all(bench)
    headers = {(m.key or b"").decode(): dict(m.headers) for m in bench.messages()}
    answers = bench.answers()
    assert answers.keys() == {*bad, "good", "second row"} and answers["good"].error is None
    for at, key in enumerate(bad):
        error = answers[key].error
        assert error and answers[key].version == 1
        assert error.where == f"{bench.requests}[0]@{at}" and (answers[key].partition, answers[key].offset) == (0, at)
        assert headers[key]["streamtrain-error"] == f"{error.path}: {error.reason}".encode()
        assert "streamtrain-errors" not in headers[key]
    assert str(answers["text"].error) == f'{bench.requests}[0]@0 at $.a: expected number, got "bad"'
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


def test_requests_of_more_than_a_slot_or_an_answer_holds(bench: Bench, served: ServedModel) -> None:
    rows = np.random.default_rng(0).standard_normal((1000, 2)).round(3).tolist()
    bench.ask(rows[:3], "few")
    bench.ask(rows, "many")
    bench.ask([[0, 0]] * 45_000, "too many for one answer")
    no_room = "k" * 100
    bench.ask([[0, 0]] * 20_000, no_room, [("large", b"x" * 700_000)], partition=1)
    answer_all(bench)
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
    answer_all(bench)
    exponents = np.exp(served.logits(1, [[0.5, 1]])[0])
    expected = dict(zip(["walk", 'say "hi"', "süß"], exponents / exponents.sum(), strict=True))
    got = bench.answers()["k"].prediction
    assert isinstance(got, dict)
    assert got["probabilities"] == pytest.approx(expected, rel=1e-5)
    assert got["prediction"] == max(expected, key=lambda name: expected[name])


def test_requests_wait_for_the_first_trained_snapshot_which_is_said_again_and_new_ones_are_taken(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictor, "Reminder", partial(Reminder, 0.2))
    assert f"{bench.job}.snapshots" not in Admin(bench.bootstrap).names()
    with caplog.at_level("INFO", logger="streamtrain"), running(bench.config()) as counters:
        wait_for(lambda: caplog.text.count(f"waiting for the first snapshot of {bench.job}") >= 2)
        served = ServedModel(bench.bootstrap, bench.job)
        served.put(untrained=True)
        bench.ask({"a": 1, "b": 1}, "waits")
        bench.flush()
        wait_for(lambda: "waiting for the first trained snapshot" in caplog.text)
        assert counters["requests"] == 0 and bench.answers() == {}
        for version in (2, 3):
            served.put()
            wait_for(lambda version=version: counters["version"] == version)
            said = caplog.text.count("waiting for")
            bench.ask({"a": 1, "b": 1}, f"with {version}")
            bench.flush()
            wait_for(lambda version=version: counters["requests"] == version)
            assert caplog.text.count("waiting for") == said
    answers = bench.answers()
    assert {key: answer.version for key, answer in answers.items()} == {"waits": 2, "with 2": 2, "with 3": 3}
    assert answers["with 3"].prediction == {"prediction": pytest.approx(served.probability(3, [1, 1]), rel=1e-6)}


def test_one_snapshot_is_pinned_on_request(bench: Bench, model: ServedModel) -> None:
    for _ in range(3):
        model.put()
    assert answer_all(bench)["requests"] == 0, "of empty topics"
    bench.ask({"a": 1, "b": 1}, "k")
    answer_all(bench, snapshot=2)
    assert bench.answers()["k"].version == 2
    with pytest.raises(UserMistake, match="expected a version it holds"):
        answer_all(bench, snapshot=9)


def test_no_broker_and_a_bad_setting_are_said_at_once(bench: Bench) -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(KafkaUnreachable):
        answer_all(bench, kafka_consumer=nowhere, kafka_producer=nowhere)
    with pytest.raises(UserMistake, match="nonsense"):
        answer_all(bench, kafka_producer={"bootstrap.servers": bench.bootstrap, "nonsense": "1"})


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_second_bounded_run_has_nothing_left_to_answer(bench: Bench, served: ServedModel, delivery: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bench.bootstrap, "transactional.id": bench.job})
    producer.init_transactions(240)
    for i in range(40):  # two requests and a control record behind them each time, in every partition
        producer.begin_transaction()
        producer.produce(bench.requests, b"[1, 2]", str(i), partition=i % PARTITIONS)
        producer.commit_transaction(240)
    assert [answer_all(bench, delivery)["requests"] for _ in range(2)] == [40, 0]
    assert bench.counts().total() == 40


@pytest.mark.full
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_members_are_killed_join_and_leave(bench: Bench, served: ServedModel, delivery: str) -> None:
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
    answer_all(bench, delivery)
    for stop, member in zip(stops[2:], members[2:], strict=True):
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    counts = bench.counts()
    assert len(counts) == total
    if delivery == "exactly_once":
        assert counts.total() == total


def test_a_transaction_somebody_fences_is_done_again(
    bench: Bench, served: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        ask(bench, "request", 2000)
        wait_for(lambda: counters["requests"] > 0)
        broker.kill()
        for i in range(2000, 4000):
            bench.ask([i, 1], str(i), partition=i % PARTITIONS)
        broker.start()
        bench.flush()
        counts = wait_for(lambda: len(found := bench.counts()) == 4000 and found)
    if delivery == "exactly_once":
        assert counts.total() == bench.counts().total() == 4000


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


TIMEOUT_MS = 1_000  # of a transaction, from which follows how long the predictor waits for librdkafka


@pytest.mark.parametrize(
    "faults",
    [
        "send_offsets_to_transaction=3!,abort_transaction=1",
        "commit_transaction=3,destroy=1",  # of the other producer: the stuck thread has one for itself
        *(
            pytest.param(fault, marks=pytest.mark.full)
            for fault in ("init_transactions=2", "send_offsets_to_transaction=3", "commit_transaction=3")
        ),
    ],
)
def test_a_call_that_never_returns_costs_time_and_no_request(
    bench: Bench, served: ServedModel, librdkafka: Path, faults: str
) -> None:
    stop = spawn.Event()
    member = spawn.Process(target=run_predictor, args=(librdkafka, faults, TIMEOUT_MS, bench.config(), stop))
    member.start()
    try:
        for batch in range(1, 7):
            ask(bench, f"batch {batch}", 30)
            wait_for(lambda batch=batch: len(bench.counts()) == 30 * batch)
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    finally:
        member.kill()
    assert bench.counts().total() == 6 * 30


# -- topics that change, and requests of every size -------------------------------------------------------------------

SOON = {"topic.metadata.refresh.interval.ms": "500"}  # that a topic has changed is seen this soon, not after 10 s


def config_of(bench: Bench, delivery: str = "exactly_once") -> predictor.Config:
    config = bench.config(delivery)
    config.kafka_consumer.update(SOON)
    return config


def make(bench: Bench, *keys: str) -> None:
    Admin(bench.bootstrap).ensure(TopicWish(key, f"{bench.job}.{key}", PARTITIONS) for key in keys)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_topics_change_under_a_predictor(bench: Bench, served: ServedModel, delivery: str) -> None:
    with running(config_of(bench, delivery)) as counters:
        ask(bench, "before", 30)
        wait_for(lambda: counters["requests"] == 30)
        add_partitions(bench.bootstrap, bench.requests, PARTITIONS + 2)
        fresh = Bench(bench.bootstrap, bench.job)  # a producer that knows them
        for partition in range(PARTITIONS + 2):
            fresh.ask([partition, 1], f"after {partition}", partition=partition)
        fresh.flush()
        wait_for(lambda: len(bench.answers()) == PARTITIONS + 32)
        assert bench.counts().total() == PARTITIONS + 32
        delete(bench, bench.predictions)
        ask(fresh, "waits for its answers' topic", 1)
        make(bench, "predictions")
        wait_for(lambda: "waits for its answers' topic 0" in bench.answers())
        for count in (6, 120):  # fewer and more than the topic before had
            delete(bench, bench.requests)
            make(bench, "requests")
            ask(Bench(bench.bootstrap, bench.job), f"new of {count}", count)
            wait_for(lambda count=count: {f"new of {count} {at}" for at in range(count)} <= bench.answers().keys())
        delete(bench, f"{bench.job}.snapshots")
        fresh = Bench(bench.bootstrap, bench.job)
        for at in range(20):
            seen = counters["requests"]
            ask(fresh, "without snapshots", at + 1, at)
            wait_for(lambda seen=seen: counters["requests"] > seen)
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
def test_empty_and_huge_requests_are_answered_in_bounded_memory(
    bench: Bench, served: ServedModel, delivery: str
) -> None:
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
    bench: Bench, served: ServedModel, delivery: str, committed_with: str, first: int
) -> None:
    """Committed late they would pass over requests; with no id they are somebody's reset, which holds."""
    for i in range(12):
        bench.ask([i, 1], f"{i}", partition=0)
    bench.flush()
    config = config_of(bench, delivery)
    if committed_with == "its own id":
        committed_with = str(Admin(bench.bootstrap).topic_ids([bench.requests])[bench.requests])
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


# -- several snapshots at once: each request is answered by one of them, once -----------------------------------------

HEADER = "streamtrain-variant"
NAMES = ("first", "second", "wider")
ROW = [1.5, -2.0]
Scorers = dict[str, _native.RequestScorer]


def scorers(bench: Bench, model: ServedModel, format: Any = "json") -> Scorers:
    """Makes scorers of three snapshots, the third of another model; two may have pages in common."""
    wider = ServedModel(bench.bootstrap, f"{bench.job}.wider", layers=[{"dense": 4, "activation": "relu"}])
    by_name, before = {}, None
    for name, of in zip(NAMES, (model, model, wider), strict=True):
        published = of.put()
        before = Served.of(published.manifest, published.digest, of.model.payload(of.version), before)
        by_name[name] = before.request_scorer(format, 256)
    return by_name


def answered_by(by_name: Scorers, name: str, row: list[float] = ROW) -> Any:
    [(body, *_)] = by_name[name].score("asked", [json.dumps(row).encode()])
    return json.loads(body)


@contextmanager
def native(bench: Bench, delivery: str, until_end: bool = True) -> Iterator[_native.Predictor]:
    library.load()
    config = bench.config(delivery)
    native_predictor = _native.Predictor(
        list(predictor.consumer_settings(config).items()), list(predictor.producer_settings(config).items()),
        bench.requests, bench.predictions, exactly_once=delivery == "exactly_once", until_end=until_end,
    )  # fmt: skip
    try:
        yield native_predictor
    finally:
        native_predictor.close(30_000)


def to_its_end(running: _native.Predictor) -> None:
    wait_for(lambda: running.run(100))
    assert running.finish(30_000)


def answered_once(bench: Bench, count: int) -> dict[str, Answer]:
    """Returns all answers by key, once they can be read: a commit's answer comes before its markers are written."""
    wait_for(lambda: bench.counts().total() >= count)
    counts = bench.counts()
    assert len(counts) == count and set(counts.values()) == {1}
    return bench.answers()


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_each_request_is_answered_by_the_one_it_names(bench: Bench, model: ServedModel, delivery: str) -> None:
    by_name = scorers(bench, model)
    expected = {name: answered_by(by_name, name) for name in NAMES}
    assert len({str(each) for each in expected.values()}) == 3
    names = (*NAMES, None, "another")
    for at in range(300):
        name = names[at % 5]
        bench.ask(ROW, str(at), [] if name is None else [(HEADER, name.encode())], at % PARTITIONS)
    bench.flush()
    with native(bench, delivery) as running:
        running.serve(list(by_name.items()))
        to_its_end(running)
        assert running.counters()["requests"] == running.counters()["rows"] == 300
    answers = answered_once(bench, 300)
    for at in range(300):
        name, answer = names[at % 5], answers[str(at)]
        by = name if name in NAMES else "first"
        assert (answer.prediction, answer.version) == (expected[by], by_name[by].version)
        assert HEADER not in dict(answer.headers)


def test_what_one_has_no_room_for_is_answered_after_all_before_it(bench: Bench, model: ServedModel) -> None:
    """A scorer writes 16 MB at once, about, of which each bad row takes some 130 bytes: the others' answers behind that
    come again."""
    by_name, rows = scorers(bench, model), 5000
    for at in range(24):
        for name in ("first", "second"):
            bench.ask([[]] * rows, f"{name} {at}", [(HEADER, name.encode())])
        bench.ask(ROW, f"wider {at}", [(HEADER, b"wider")])
    bench.flush()
    with native(bench, "exactly_once") as running:
        running.serve(list(by_name.items()))
        to_its_end(running)
        batches = running.counters()["batches"]
    answers = answered_once(bench, 72)
    assert batches >= 2
    for key, answer in answers.items():
        name = key.partition(" ")[0]
        assert answer.version == by_name[name].version
        assert answer.prediction == answered_by(by_name, name) if name == "wider" else answer.error is not None


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_waits_for_a_schema_holds_its_partition_alone(bench: Bench, model: ServedModel, delivery: str) -> None:
    known = {"1": ("{}", "")}
    by_name = scorers(bench, model, {"name": "json", "frame": "registry", "schemas": known.get})

    def ask(key: str, name: str, schema: int, partition: int) -> None:
        value = b"\0" + schema.to_bytes(4, "big") + json.dumps(ROW).encode()
        bench.ask(value, key, [(HEADER, name.encode())], partition)

    for at in range(20):
        name, other = NAMES[at % 3], NAMES[(at + 1) % 3]
        ask(f"before {at}", name, 1, 0)
        ask(f"goes on {at}", other, 1, 1)
    ask("waits", "second", 2, 0)
    for at in range(20):
        ask(f"behind {at}", NAMES[at % 3], 1, 0)
        ask(f"goes on too {at}", NAMES[at % 3], 1, 1)
    bench.flush()
    with native(bench, delivery) as running:
        running.serve(list(by_name.items()))
        wait_for(lambda: running.run(50) or (running.counters()["requests"] >= 60 and running.counters()["waiting"]))
        assert running.counters()["requests"] == 60 and running.finish(30_000)
        assert not any(key.startswith(("waits", "behind")) for key in answered_once(bench, 60))
        known["2"] = ("{}", "")
        running.look_again()
        to_its_end(running)
    assert answered_once(bench, 81)["waits"].version == by_name["second"].version


def test_all_are_taken_over_at_once(bench: Bench, model: ServedModel) -> None:
    """While it answers: what was answered by a set is followed by nothing of the one before."""
    by_name = scorers(bench, model)
    with native(bench, "exactly_once", until_end=False) as running:
        running.serve([("a", by_name["first"]), ("b", by_name["second"])])
        for turn, (a, b) in enumerate((("first", "second"), ("second", "wider"))):
            if turn:
                running.serve([("a", by_name[a]), ("b", by_name[b])])
            for at in range(40):
                bench.ask(ROW, f"{turn} {at}", [(HEADER, b"b")] if at % 2 else [])
            bench.flush()
            wait_for(lambda turn=turn: running.run(50) or running.counters()["requests"] >= 40 * (turn + 1))
    answers = answered_once(bench, 80)
    expected = {(turn, odd): answered_by(by_name, name) for (turn, odd), name in
                {(0, 0): "first", (0, 1): "second", (1, 0): "second", (1, 1): "wider"}.items()}  # fmt: skip
    for key, answer in answers.items():
        turn, at = map(int, key.split())
        assert answer.prediction == expected[turn, at % 2]


def test_a_name_and_a_scorer_are_unique(bench: Bench, model: ServedModel) -> None:
    by_name = scorers(bench, model)
    with native(bench, "exactly_once") as running:
        for wrong in (
            [],
            [("a", by_name["first"]), ("a", by_name["second"])],
            [("a", by_name["first"]), ("b", by_name["first"])],
        ):
            with pytest.raises(ValueError, match="scorer"):
                running.serve(wrong)
