"""A live model on a real broker: ready when there is a snapshot, newer ones taken over, damaged ones not."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

import pytest
from publisher import Publisher
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.predictions import read_predictions
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.errors import KafkaUnreachable, RecordError, StreamtrainError, UserMistake

ROW = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}
MODEL = SmallModel.make()


@pytest.fixture
def job(kafka: Any) -> str:
    return str(kafka.fresh_name("live"))


def test_it_waits_for_the_first_trained_snapshot_and_follows(kafka: Any, job: str) -> None:
    publisher = Publisher(kafka.bootstrap, job)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        assert (model.ready, model.version, model.age_s, model.digest) == (False, None, None, None)
        with pytest.raises(UserMistake, match="found none yet"):
            model.predict(ROW)
        MODEL.put(publisher, 1, untrained=True)
        wait_for(lambda: model.connected)
        with pytest.raises(UserMistake, match="found none yet"):
            model.wait_ready(0.3)
        made = MODEL.put(publisher, 2, created_ms=int(time.time() * 1000))
        model.wait_ready(120)
        assert (model.version, model.digest) == (2, made.digest.hex())
        assert model.age_s is not None and 0 <= model.age_s < 600
        first = model.predict(ROW)
        MODEL.put(publisher, 3)
        wait_for(lambda: model.version == 3)
        assert model.predict(ROW) != first
        publisher.put_damaged(4, MODEL.payload(4), lambda messages: messages[1:])
        MODEL.put(publisher, 5)
        wait_for(lambda: model.version == 5)
    model.close()
    with pytest.raises(UserMistake, match="closed"):
        model.predict(ROW)


def test_a_model_of_another_shape_is_taken_over(kafka: Any, job: str) -> None:
    publisher = Publisher(kafka.bootstrap, job)
    MODEL.put(publisher, 1)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(120)
        other = SmallModel.make({"x": {}, "y": {"role": "label"}}, "mean_squared_error", ())
        other.put(publisher, 2)
        wait_for(lambda: model.version == 2)
        assert model.predict({"x": 1}).keys() == {"prediction"}
        broken = {**other.spec, "loss": "magic"}
        publisher.put(3, b"", model_spec=broken, schema=other.schema.to_dict())
        other.put(publisher, 4)
        wait_for(lambda: model.version == 4)


def test_threads_predict_while_models_are_swapped(kafka: Any, job: str) -> None:
    """Every answer is that of one whole snapshot, never a mixture."""
    publisher = Publisher(kafka.bootstrap, job)
    MODEL.put(publisher, 1)
    expected: set[float] = set()
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(120)
        seen: list[set[float]] = [set() for _ in range(4)]
        stop = threading.Event()

        def predict(answers: set[float]) -> None:
            while not stop.is_set():
                answers.add(model.predict(ROW)["prediction"])

        threads = [threading.Thread(target=predict, args=(answers,)) for answers in seen]
        for thread in threads:
            thread.start()
        for version in range(1, 12):
            if version > 1:
                MODEL.put(publisher, version)
            wait_for(lambda version=version: model.version == version)  # type: ignore[misc]
            expected.add(model.predict(ROW)["prediction"])
        stop.set()
        for thread in threads:
            thread.join()
    assert len(expected) == 11 and set().union(*seen) <= expected


def test_after_a_fork_it_says_so(kafka: Any, job: str) -> None:
    MODEL.put(Publisher(kafka.bootstrap, job), 1)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(120)
        child = os.fork()
        if child == 0:  # no assert here: the child must end by _exit
            told = 0
            for call in (lambda: model.predict(ROW), lambda: model.wait_ready(1)):
                try:
                    call()
                except UserMistake as error:
                    told += "after a fork" in str(error)
            model.close()
            os._exit(0 if told == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert model.predict(ROW)


def test_no_broker_is_said_and_waited_for() -> None:
    with LiveModel("job", bootstrap="127.0.0.1:9") as model:
        with pytest.raises(KafkaUnreachable, match=r"wait_ready\(0\.01\).*127\.0\.0\.1:9, got none"):
            model.wait_ready(0.01)
        wait_for(lambda: model.error is not None)
        assert isinstance(model.error, KafkaUnreachable) and not model.connected
        with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:9"):
            model.wait_ready(0.01)
        assert repr(model) == "<LiveModel 'job': waiting for a snapshot, no connection>"


@pytest.mark.parametrize(
    ("job", "bootstrap", "settings", "text"),
    [
        ("a/b", "localhost:9092", None, "expected a job's name of letters, digits"),
        ("", "localhost:9092", None, "expected a job's name"),
        (None, "localhost:9092", None, "expected a job's name"),
        (5, "localhost:9092", None, "got 5"),
        ("job", "", None, "expected Kafka's address"),
        ("job", None, None, "expected Kafka's address as bootstrap"),
        ("job", ["localhost:9092"], None, "expected Kafka's address"),
        ("job", "127.0.0.1:9", {"nonsense": 1}, "nonsense"),
    ],
)
@pytest.mark.parametrize("made", [LiveModel, follow_snapshots, read_predictions])
def test_arguments_are_checked_at_the_door(made: Any, job: Any, bootstrap: Any, settings: Any, text: str) -> None:
    with pytest.raises(UserMistake, match=text):
        made(job, bootstrap=bootstrap, kafka=settings)


def test_it_says_what_it_is_and_whether_kafka_answers(kafka: Any, job: str) -> None:
    publisher = Publisher(kafka.bootstrap, job)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        wait_for(lambda: model.connected)
        assert repr(model) == f"<LiveModel {job!r}: waiting for a snapshot>" and model.error is None
        made = MODEL.put(publisher, 3, created_ms=int(time.time() * 1000))
        model.wait_ready(120)
        assert repr(model).startswith(f"<LiveModel {job!r}: version 3, ") and repr(model).endswith(" s old>")
        answer = model.answer([ROW, ROW])
        assert (answer.version, answer.digest, answer.values) == (3, made.digest.hex(), model.predict([ROW, ROW]))
        assert 0 <= answer.age_s < 600
        bad = model.answer([ROW, {}], errors="return").values[1]
        assert isinstance(bad, RecordError)
    assert repr(model) == f"<LiveModel {job!r}: closed>" and not model.connected


def test_it_is_awaited_while_the_loop_goes_on(kafka: Any, job: str) -> None:
    publisher = Publisher(kafka.bootstrap, job)

    async def use() -> None:
        with LiveModel(job, bootstrap=kafka.bootstrap) as model:
            waiting = [asyncio.create_task(model.aready(60)) for _ in range(3)]
            ticks = 0
            while not model.connected:
                await asyncio.sleep(0)
                ticks += 1
            assert ticks and not any(task.done() for task in waiting)
            with pytest.raises(UserMistake, match=r"aready\(0\.01\).*found none yet"):
                await model.aready(0.01)
            await asyncio.to_thread(MODEL.put, publisher, 1)
            await asyncio.gather(*waiting)
            await model.aready()
            assert model.predict(ROW)
            late = LiveModel(job + "-none", bootstrap=kafka.bootstrap)
            task = asyncio.create_task(late.aready(60))
            await asyncio.sleep(0)
            await asyncio.to_thread(late.close)
            with pytest.raises(UserMistake, match="closed"):
                await task

    asyncio.run(use())


def test_what_keeps_it_from_being_ready_is_told(kafka: Any, job: str) -> None:
    Publisher(kafka.bootstrap, job).put_damaged(1, MODEL.payload(1), lambda messages: messages[1:])
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        wait_for(lambda: model._error is not None)
        with pytest.raises(StreamtrainError, match="chunk s/0001/c/0000 is missing"):
            model.wait_ready(0.01)


def test_one_dict_is_answered_within_100_microseconds(kafka: Any, job: str) -> None:
    MODEL.put(Publisher(kafka.bootstrap, job), 1)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(120)
        took_s = []
        for _ in range(10):
            begun_s = time.thread_time()  # of this thread alone: the machine may be busy
            for _ in range(500):
                model.predict(ROW)
            took_s.append((time.thread_time() - begun_s) / 500)
    assert min(took_s) < 100e-6, "the bench holds the 99th percentile to this"
