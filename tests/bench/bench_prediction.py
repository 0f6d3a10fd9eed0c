"""Request to answer at 1,000/s, and answers per second, against the smallest Python loops over the same library.

The latency's rivals have no model; the throughput's rival runs the same network in NumPy. Each side is a process of its
own, so three share the machine with the broker. Where others work too, `chrt -r 1` keeps them out of the figures.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import msgpack
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from served_model import ServedModel

from streamtrain.broker import start_broker
from streamtrain.columns.formats.msgpack import encode
from streamtrain.kafka.admin import Admin
from streamtrain.run.roles import predictor
from streamtrain.topics.topic import TopicWish

FIGURES = 3  # lines of a whole run
SMOKE = ["--seconds", "1", "--turns", "1"]

NUMBERS = 28
COLUMNS = {f"x{i}": {"kind": "number"} for i in range(NUMBERS)} | {"y": {"role": "label"}}
LAYERS = [{"dense": 64, "activation": "relu"}, {"dense": 64, "activation": "relu"}]
RATE = 1000  # requests a second
TURNS = 3
PARTITIONS = 2
DELIVERIES = ("at_least_once", "exactly_once")
BAR = 1.0  # p99 of the rival / ours
FAST = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 20, "linger.ms": 0}
spawn = multiprocessing.get_context("spawn")


def figure(bench: str, ours: float, rival: float, ratio: float, bar: float, unit: str, **more: float) -> None:
    print(json.dumps({"bench": bench, "ours": ours, "rival": rival, "ratio": ratio, "bar": bar, "unit": unit, **more}))


def group_of(job: str, bootstrap: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap, "group.id": f"{job}.predict", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "isolation.level": "read_committed", "fetch.wait.max.ms": 5, **more,
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
    layers = [(parameters[f"{name}.weight"], parameters[f"{name}.bias"]) for name in ("dense0", "dense1", "output")]
    names = [name for name in COLUMNS if name != "y"]
    ours = [("streamtrain-version", b"1"), ("streamtrain-digest", digest)]
    while not stop.is_set():
        batch = [message for message in consumer.consume(1000, 0.1) if not message.error()]
        if not batch:
            producer.poll(0)
            continue
        rows = [msgpack.unpackb(message.value()) for message in batch]
        x = np.array([[row[name] for name in names] for row in rows], np.float32)
        for weight, bias in layers[:-1]:
            x = np.maximum(x @ weight + bias, 0)
        y = 1 / (1 + np.exp(-(x @ layers[-1][0] + layers[-1][1])))
        for message, value in zip(batch, y[:, 0].tolist(), strict=True):
            answer = json.dumps({"prediction": value})
            producer.produce(f"{job}.predictions", answer, message.key(), headers=(message.headers() or []) + ours)
        producer.poll(0)
    producer.flush(20)
    consumer.close()


class Job:
    """Topics, a published network and requests for one measurement."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self.name = bootstrap, f"bench-{uuid.uuid4().hex[:8]}"
        self.served = ServedModel(bootstrap, self.name, COLUMNS, LAYERS)
        self.digest = self.served.put().digest.hex().encode()
        Admin(bootstrap).ensure(TopicWish(key, f"{self.name}.{key}", PARTITIONS) for key in ("requests", "predictions"))
        random = np.random.default_rng(0).standard_normal((256, NUMBERS), np.float32)
        self.requests = [encode(self.served.schema, dict(zip(COLUMNS, row[:, None], strict=False))) for row in random]

    def ours(self, delivery: str, stop: Any) -> Any:
        common = {"bootstrap.servers": self.bootstrap}
        config = predictor.Config(
            job=self.name, format={"name": "msgpack"}, registry={}, requests=f"{self.name}.requests",
            predictions=f"{self.name}.predictions", kafka_consumer=common, kafka_producer=common, delivery=delivery,
        )  # fmt: skip
        return spawn.Process(target=predictor.answer, args=(config, stop))

    def reader(self) -> Consumer:
        consumer = Consumer(group_of(f"{self.name}.reader", self.bootstrap))
        consumer.assign([TopicPartition(f"{self.name}.predictions", p, 0) for p in range(PARTITIONS)])
        return consumer

    def producer(self, **settings: Any) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "queue.buffering.max.messages": 1_000_000, **settings})


@contextlib.contextmanager
def started(process: Any, stop: Any) -> Iterator[None]:
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join(60)


def latencies_ms(job: Job, seconds: float) -> np.ndarray:
    """From produce() to the answer read, at RATE, without the first second."""
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
    producer = job.producer(**{"linger.ms": 0})
    while not found:  # the other side is up
        sent[b"first%d" % len(sent)] = time.perf_counter()
        producer.produce(f"{job.name}.requests", job.requests[0], b"first%d" % (len(sent) - 1))
        producer.flush(10)
        time.sleep(0.1)
    begin = time.perf_counter()
    for i in range(int((seconds + 1) * RATE)):
        while (ahead := begin + i / RATE - time.perf_counter()) > 0:
            time.sleep(ahead)
        key = b"%d" % i
        sent[key] = time.perf_counter()
        producer.produce(f"{job.name}.requests", job.requests[i % len(job.requests)], key)
        producer.poll(0)
    producer.flush(20)
    done.set()
    reader.join(60)
    return np.array([(end - start) * 1e3 for start, end in found if start > begin + 1])


def latency(bootstrap: str, seconds: float, turns: int) -> None:
    """In turns, median of the turns; a first turn, not counted, is for the broker to be warm."""
    for delivery in DELIVERIES:
        found: dict[str, list[np.ndarray]] = {"ours": [], "rival": []}
        for side in ("ours", "rival") * (turns + 1):
            job, stop = Job(bootstrap), spawn.Event()
            rival = spawn.Process(target=python_echo, args=(job.name, bootstrap, delivery == "exactly_once", stop))
            with started(job.ours(delivery, stop) if side == "ours" else rival, stop):
                found[side].append(np.percentile(latencies_ms(job, seconds / turns), (50, 99)))
        (p50, p99), (p50_rival, p99_rival) = (np.median(found[side][1:], axis=0).round(2).tolist() for side in found)
        ratio = round(p99_rival / p99, 2)
        figure(
            f"prediction latency p99 {delivery}", p99, p99_rival, ratio, BAR, "ms", p50_ours=p50, p50_rival=p50_rival
        )


def answers_per_s(job: Job, count: int, process: Any, stop: Any) -> float:
    """All requests lie ready; from the first answer's timestamp to the last one's, so that no start-up counts."""
    producer = job.producer(**{"linger.ms": 20})
    for i in range(count):
        producer.produce(
            f"{job.name}.requests", job.requests[i % len(job.requests)], b"%d" % i, partition=i % PARTITIONS
        )
        if i % 10_000 == 0:
            producer.poll(0)
    producer.flush(60)
    consumer, stamps = job.reader(), []
    ends = [TopicPartition(f"{job.name}.predictions", partition) for partition in range(PARTITIONS)]
    with started(process, stop):  # nothing else takes the machine's time meanwhile
        while sum(consumer.get_watermark_offsets(end, 10)[1] for end in ends) < count:
            time.sleep(0.2)
    while len(stamps) < count:
        stamps += [message.timestamp()[1] for message in consumer.consume(10_000, 1) if not message.error()]
    consumer.close()
    return count / max((max(stamps) - min(stamps)) / 1e3, 1e-3)


def throughput(bootstrap: str, seconds: float, turns: int) -> None:
    found: dict[str, list[float]] = {"ours": [], "rival": []}
    for side in ("ours", "rival") * turns:
        job, stop = Job(bootstrap), spawn.Event()
        if side == "ours":
            process, guess = job.ours("at_least_once", stop), 300_000
        else:
            rival = (job.name, bootstrap, job.served.parameters(1), job.digest, stop)
            process, guess = spawn.Process(target=python_predict, args=rival), 80_000
        found[side].append(answers_per_s(job, int(guess * seconds / turns), process, stop))
    ours, theirs = (round(float(np.median(rates))) for rates in found.values())
    figure("prediction throughput at_least_once", ours, theirs, round(ours / theirs, 2), 5, "requests/s")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    benches: list[Callable[[str, float, int], None]] = [latency, throughput]
    with contextlib.nullcontext(options.bootstrap) if options.bootstrap else start_broker() as broker:
        for bench in benches:
            bench(options.bootstrap or broker.bootstrap, options.seconds, options.turns)


if __name__ == "__main__":
    main()
