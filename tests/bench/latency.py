"""Event to snapshot: from a record's timestamp at the producer until a follower has a snapshot that has learned it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.topics.topic import TopicWish
from tests.bench.bed import BATCH_ROWS, PARTITIONS, Bed, logistic, records_of, spawn, train
from tests.bench.harness import LIMIT, MOST, Line, Run, Sides, bench, once

RATE = 10_000   # rows a second
WARM_S = 2.0    # left out at the beginning


class Source:
    """Produces at RATE until stopped; remembers each row's timestamp by partition and offset."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self.sent: list[list[float]] = [[] for _ in range(PARTITIONS)]
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._bed.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        records, begun, count = records_of("msgpack", 1024), time.time(), 0
        while not self._done.wait(0.005):
            for at in range(count, int((time.time() - begun) * RATE)):
                self.sent[at % PARTITIONS].append(time.time())
                producer.produce(self._bed.records, records[at & 1023], partition=at % PARTITIONS)
                count += 1
            producer.poll(0)
        producer.flush(30)

    def close(self) -> None:
        self._done.set()
        self._thread.join()


def percentiles_ms(source: Source, held: Iterator[list[int]], seconds: float) -> dict[str, float]:
    """`held` gives the offsets a follower's newest snapshot has learned, each time it gets one."""
    known, found, warm_until = [0] * PARTITIONS, list[float](), 0.0
    for offsets in held:
        now = time.time()
        warm_until = warm_until or now + WARM_S   # from the first snapshot on: a start is no delay
        for partition, offset in enumerate(offsets):
            sent = source.sent[partition][known[partition] : offset]
            known[partition] = max(known[partition], offset)
            found += [1e3 * (now - at) for at in sent if at > warm_until]
        if found and now > warm_until + seconds:
            break
    return {f"p{at}": float(np.percentile(found, at)) for at in (50, 99)}


def python_trainer(bootstrap: str, records: str, out: str, interval_ms: int, stop: Any) -> None:
    """The rival."""
    learn = logistic(True)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": out, "linger.ms": 0})
    producer.init_transactions(30)
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": out, "enable.auto.commit": False, "fetch.wait.max.ms": 20,
    })  # fmt: skip
    consumer.assign([TopicPartition(records, partition, 0) for partition in range(PARTITIONS)])
    offsets, model, due = [0] * PARTITIONS, None, time.monotonic() + interval_ms / 1e3
    while not stop.is_set():
        messages = [message for message in consumer.consume(BATCH_ROWS, 0.01) if not message.error()]
        if messages:
            model = learn(np.array([msgpack.unpackb(message.value()) for message in messages], np.float32))
            for message in messages:
                offsets[message.partition()] = message.offset() + 1
        if time.monotonic() >= due and any(offsets):
            due = time.monotonic() + interval_ms / 1e3
            producer.begin_transaction()
            producer.produce(out, json.dumps({"offsets": offsets, "coefficients": model.coef_.tolist()}))
            ends = [TopicPartition(records, partition, offset) for partition, offset in enumerate(offsets)]
            producer.send_offsets_to_transaction(ends, consumer.consumer_group_metadata())
            producer.commit_transaction()
    consumer.close()


def python_follower(bootstrap: str, topic: str) -> Iterator[list[int]]:
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": f"{topic}.reader", "isolation.level": "read_committed",
        "fetch.wait.max.ms": 20, "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        while True:
            message = consumer.poll(1)
            if message and not message.error():
                yield json.loads(message.value())["offsets"]
    finally:
        consumer.close()


def of_streamtrain(bed: Bed, interval_ms: int, seconds: float) -> dict[str, float]:
    path = bed.job(train=f'round_interval = "{interval_ms}ms"', publish_interval=f"{interval_ms}ms")
    process = train(path)
    drained = threading.Thread(target=lambda: [None for _ in process.stdout or ()])
    drained.start()
    try:
        with closing(Source(bed)) as source:
            snapshots = follow_snapshots(Path(path).stem, bootstrap=bed.bootstrap)
            held = ([at.offset for at in snapshot.manifest.positions.partitions] for snapshot in snapshots)
            return percentiles_ms(source, held, seconds)
    finally:
        process.terminate()
        process.wait(60)
        drained.join()


def of_python(bed: Bed, interval_ms: int, seconds: float) -> dict[str, float]:
    stop, out = spawn.Event(), f"{bed.records}.coefficients"
    bed.admin.ensure([TopicWish("coefficients", out, 1)])
    process = spawn.Process(target=python_trainer, args=(bed.bootstrap, bed.records, out, interval_ms, stop))
    process.start()
    try:
        with closing(Source(bed)) as source:
            return percentiles_ms(source, python_follower(bed.bootstrap, out), seconds)
    finally:
        stop.set()
        process.join(60)


@bench(
    "latency",
    {
        (interval_ms,): [
            Line(f"every {interval_ms} ms, {part}", f"train:{part}", f"Python loop:{part}", bar, wants)
            for part, bar, wants in bars
        ]
        for interval_ms, bars in {
            100: [("p50", 1.0, MOST), ("p99", 1.0, MOST)], 20: [("p50", 40.0, LIMIT), ("p99", 1.0, MOST)],
        }.items()
    },
    once, "ms", seconds=30.0,
)  # fmt: skip
def latency(run: Run, interval_ms: int) -> Sides:
    """From an event to a snapshot that has learned it, of 10,000 rows a second. The rival is a Python loop that trains
    scikit-learn's logistic model and as often writes coefficients and offsets in a transaction; its follower reads
    them."""
    kafka = run.kafka
    return {
        "train": lambda: of_streamtrain(Bed(kafka), interval_ms, run.seconds),
        "Python loop": lambda: of_python(Bed(kafka), interval_ms, run.seconds),
    }
