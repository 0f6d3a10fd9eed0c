"""Request to answer at 1,000/s, and answers per second, against the smallest Python loops over the same library.

Each side is a process of its own, so three share the machine with the broker. Where others work too, `chrt -r 1` keeps
them out of the figures.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from prediction_bench import Bench
from served_model import ServedModel

from streamtrain.columns.formats.msgpack import encode
from streamtrain.run.roles import predictor
from tests.bench.bed import PARTITIONS, fresh_name, spawn
from tests.bench.harness import Line, Run, Sides, bench, in_turns
from tests.bench.live_model import COLUMNS, NAMES, NUMBERS, layers_of, logits

RATE = 1000  # requests a second
FAST = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 20, "linger.ms": 0}
ECHO, LOOP = "Python loop without a model", "consume, msgpack, NumPy, produce"


def group_of(job: str, bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap, "group.id": f"{job}.predict", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "isolation.level": "read_committed", "fetch.wait.max.ms": 5,
    }  # fmt: skip


def python_echo(job: str, bootstrap: str, exactly_once: bool, stop: Any) -> None:
    """The latency's rival: what was asked is the answer."""
    consumer = Consumer(group_of(job, bootstrap))
    more = {"transactional.id": job} if exactly_once else {"enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **FAST, **more})
    if exactly_once:
        producer.init_transactions(20)
    consumer.subscribe([f"{job}.requests"])
    while not stop.is_set():
        first = consumer.poll(0.1)
        batch = [first, *consumer.consume(1000, 0)] if first else []
        batch = [message for message in batch if not message.error()]
        if not batch:
            producer.poll(0)
            continue
        if exactly_once:
            producer.begin_transaction()
        for message in batch:
            producer.produce(f"{job}.predictions", message.value(), message.key())
        if exactly_once:
            ends = {message.partition(): message.offset() + 1 for message in batch}
            offsets = [TopicPartition(f"{job}.requests", partition, end) for partition, end in ends.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            producer.commit_transaction()
        else:
            producer.poll(0)
            consumer.commit(asynchronous=True)
    consumer.close()


def python_predict(job: str, bootstrap: str, parameters: dict[str, Any], digest: bytes, stop: Any) -> None:
    """The throughput's rival: consume, msgpack, a forward pass in NumPy, produce; the same answers and headers."""
    consumer = Consumer(group_of(job, bootstrap))
    producer = Producer({"bootstrap.servers": bootstrap, **FAST, "queue.buffering.max.messages": 1_000_000})
    consumer.subscribe([f"{job}.requests"])
    layers = layers_of(parameters)
    ours = [("streamtrain-version", b"1"), ("streamtrain-digest", digest)]
    while not stop.is_set():
        batch = [message for message in consumer.consume(1000, 0.1) if not message.error()]
        if not batch:
            producer.poll(0)
            continue
        rows = [msgpack.unpackb(message.value()) for message in batch]
        x = np.array([[row[name] for name in NAMES] for row in rows], np.float32)
        y = 1 / (1 + np.exp(-logits(layers, x)))
        for message, value in zip(batch, y[:, 0].tolist(), strict=True):
            answer = json.dumps({"prediction": value})
            producer.produce(f"{job}.predictions", answer, message.key(), headers=(message.headers() or []) + ours)
        producer.poll(0)
    producer.flush(20)
    consumer.close()


class Job(Bench):
    """Topics, a published network and requests for one measurement, and the process that answers them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, fresh_name(), PARTITIONS)
        self.name, self._stop = self.job, spawn.Event()
        self.served = ServedModel(bootstrap, self.name, COLUMNS, (64, 64))
        self.digest = self.served.put().digest.hex().encode()
        random = np.random.default_rng(0).standard_normal((256, NUMBERS), np.float32)
        self._requests = [encode(self.served.schema, dict(zip(COLUMNS, row[:, None], strict=False))) for row in random]

    @contextlib.contextmanager
    def answered(self, target: Any, *arguments: Any) -> Iterator[None]:
        process = spawn.Process(target=target, args=(*arguments, self._stop))
        process.start()
        try:
            yield
        finally:
            self._stop.set()
            process.join(60)

    def ours(self, delivery: str) -> tuple[Any, ...]:
        consumer = {"bootstrap.servers": self.bootstrap}
        return predictor.answer, self.config(delivery, format={"name": "msgpack"}, kafka_consumer=consumer)

    def reader(self) -> Consumer:
        consumer = Consumer(group_of(f"{self.name}.reader", self.bootstrap))
        consumer.assign([TopicPartition(f"{self.name}.predictions", p, 0) for p in range(PARTITIONS)])
        return consumer

    def requester(self, linger_ms: int) -> Producer:
        return Producer({
            "bootstrap.servers": self.bootstrap, "queue.buffering.max.messages": 1_000_000, "linger.ms": linger_ms,
        })  # fmt: skip

    def request(self, producer: Producer, i: int, key: bytes, partition: int = -1) -> None:
        producer.produce(self.requests, self._requests[i % len(self._requests)], key, partition=partition)


def percentiles_ms(job: Job, seconds: float) -> dict[str, float]:
    """Milliseconds from produce() to the answer read, at RATE, without the first second."""
    sent: dict[bytes, float] = {}
    found: list[tuple[float, float]] = []
    done = threading.Event()

    def read() -> None:
        consumer = job.reader()
        while not done.is_set() or len(found) < len(sent):
            message = consumer.poll(0.1)
            if message and not message.error():
                found.append((sent[message.key()], time.perf_counter()))
        consumer.close()

    reader = threading.Thread(target=read)
    reader.start()
    producer = job.requester(0)
    while not found:  # the other side is up
        key = b"first%d" % len(sent)
        sent[key] = time.perf_counter()
        job.request(producer, 0, key)
        producer.flush(10)
        time.sleep(0.1)
    begin = time.perf_counter()
    for i in range(int((seconds + 1) * RATE)):
        while (ahead := begin + i / RATE - time.perf_counter()) > 0:
            time.sleep(ahead)
        key = b"%d" % i
        sent[key] = time.perf_counter()
        job.request(producer, i, key)
        producer.poll(0)
    producer.flush(20)
    done.set()
    reader.join(60)
    took = [(end - start) * 1e3 for start, end in found if start > begin + 1]
    return {f"p{at}": float(np.percentile(took, at)) for at in (50, 99)}


def answers_per_s(job: Job, count: int, *answerer: Any) -> float:
    """Answers a second of requests that lie ready, by timestamps of the first and the last answer."""
    producer = job.requester(20)
    for i in range(count):
        job.request(producer, i, b"%d" % i, i % PARTITIONS)
        if i % 10_000 == 0:
            producer.poll(0)
    producer.flush(60)
    consumer, stamps = job.reader(), []
    ends = [TopicPartition(f"{job.name}.predictions", partition) for partition in range(PARTITIONS)]
    with job.answered(*answerer):  # nothing else takes the machine's time meanwhile
        while sum(consumer.get_watermark_offsets(end, 10)[1] for end in ends) < count:
            time.sleep(0.2)
    while len(stamps) < count:
        stamps += [message.timestamp()[1] for message in consumer.consume(10_000, 1) if not message.error()]
    consumer.close()
    return count / max((max(stamps) - min(stamps)) / 1e3, 1e-3)


def warmed(calls: Any, run: Run) -> Any:
    """The median of the turns; a first turn of the latency warms the broker and does not count."""
    for call in calls.values() if ECHO in calls else ():
        call()
    return in_turns(calls, run)


@bench(
    "prediction",
    {
        (delivery,): [
            Line(f"latency p99, {delivery}", "predict:p99", f"{ECHO}:p99", 1.0, inverse=True, unit="ms"),
            Line(f"latency p50, {delivery}", "predict:p50", f"{ECHO}:p50", inverse=True, unit="ms"),
        ]
        for delivery in ("at_least_once", "exactly_once")
    }
    | {(): [Line("throughput, at_least_once", "predict", LOOP, 5.0)]},
    warmed, "requests/s", {"seconds": 3.0}, seconds=15.0, turns=3,
)  # fmt: skip
def prediction(run: Run, delivery: str = "") -> Sides:
    """Request to answer at 1,000/s against a loop without a model; answers a second against a loop with NumPy."""
    kafka, seconds = run.kafka, run.seconds / run.turns

    def ours() -> dict[str, float]:
        job = Job(kafka)
        with job.answered(*job.ours(delivery)):
            return percentiles_ms(job, seconds)

    def echo() -> dict[str, float]:
        job = Job(kafka)
        with job.answered(python_echo, job.name, kafka, delivery == "exactly_once"):
            return percentiles_ms(job, seconds)

    def ours_per_s() -> float:
        job = Job(kafka)
        return answers_per_s(job, int(300_000 * seconds), *job.ours("at_least_once"))

    def loop_per_s() -> float:
        job = Job(kafka)
        its = (job.name, kafka, job.served.parameters(1), job.digest)
        return answers_per_s(job, int(80_000 * seconds), python_predict, *its)

    return {"predict": ours, ECHO: echo} if delivery else {"predict": ours_per_s, LOOP: loop_per_s}
