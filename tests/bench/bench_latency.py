"""Event to snapshot: from a record's timestamp at the producer until a follower holds a snapshot that has learned it.

10,000 rows a second, rounds and publications every 100 and every 20 ms. The rival is a Python loop that trains
scikit-learn's logistic model and as often writes the coefficients and its offsets in a transaction; its follower reads
them.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from workbench import BATCH_ROWS, NUMBERS, PARTITIONS, Bed, encoded, figure, kafka_at, spawn, train

from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.topics.topic import TopicWish

FIGURES = 4  # lines of a whole run

RATE = 10_000  # rows a second
INTERVALS_MS = (100, 20)
BAR = 1.0  # times the rival's
BAR_20_MS = 40.0  # p50 with publications every 20 ms
WARM_S = 2.0  # left out at the beginning


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
        records, begun, count = encoded("msgpack", 1024), time.time(), 0
        while not self._done.wait(0.005):
            for at in range(count, int((time.time() - begun) * RATE)):
                self.sent[at % PARTITIONS].append(time.time())
                producer.produce(self._bed.records, records[at & 1023], partition=at % PARTITIONS)
                count += 1
            producer.poll(0)
        producer.flush(30)

    def stop(self) -> None:
        self._done.set()
        self._thread.join()


def measured_ms(source: Source, held: Iterator[list[int]], seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """`held` gives the offsets a follower's newest snapshot has learned, each time it gets one."""
    known, found, warm_until = [0] * PARTITIONS, [], 0.0
    for offsets in held:
        now = time.time()
        warm_until = warm_until or now + WARM_S  # from the first snapshot on: a start is no delay
        for partition, offset in enumerate(offsets):
            sent = source.sent[partition][known[partition] : offset]
            known[partition] = max(known[partition], offset)
            found += [1e3 * (now - at) for at in sent if at > warm_until]
        if found and now > warm_until + seconds:
            break
    return np.array(found)


def python_trainer(bootstrap: str, records: str, out: str, interval_ms: int, stop: Any) -> None:
    """The rival."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=1e-3)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": out, "linger.ms": 0})
    producer.init_transactions(30)
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": out, "enable.auto.commit": False, "fetch.wait.max.ms": 20,
    })  # fmt: skip
    consumer.assign([TopicPartition(records, partition, 0) for partition in range(PARTITIONS)])
    offsets, due = [0] * PARTITIONS, time.monotonic() + interval_ms / 1e3
    while not stop.is_set():
        messages = [message for message in consumer.consume(BATCH_ROWS, 0.01) if not message.error()]
        if messages:
            batch = np.array([msgpack.unpackb(message.value()) for message in messages], np.float32)
            model.partial_fit(batch[:, :NUMBERS], batch[:, NUMBERS].astype(np.int64), classes=np.array([0, 1]))
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


def of_streamtrain(bed: Bed, interval_ms: int, seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    path = bed.job(round_interval=f"{interval_ms}ms", publish_interval=f"{interval_ms}ms")
    process = train(path)
    drained = threading.Thread(target=lambda: [None for _ in process.stdout or ()])
    drained.start()
    source = Source(bed)
    try:
        snapshots = follow_snapshots(Path(path).stem, bootstrap=bed.bootstrap)
        held = ([at.offset for at in snapshot.manifest.positions.partitions] for snapshot in snapshots)
        return measured_ms(source, held, seconds)
    finally:
        source.stop()
        process.terminate()
        process.wait(60)
        drained.join()


def of_python(bed: Bed, interval_ms: int, seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    stop, out = spawn.Event(), f"{bed.records}.coefficients"
    bed.admin.ensure([TopicWish("coefficients", out, 1)])
    process = spawn.Process(target=python_trainer, args=(bed.bootstrap, bed.records, out, interval_ms, stop))
    process.start()
    source = Source(bed)
    try:
        return measured_ms(source, python_follower(bed.bootstrap, out), seconds)
    finally:
        source.stop()
        stop.set()
        process.join(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    sides: list[Callable[[Bed, int, float], np.ndarray[Any, np.dtype[np.float64]]]] = [of_streamtrain, of_python]
    with kafka_at(options.bootstrap) as bootstrap:
        for interval_ms in INTERVALS_MS:
            found = [side(Bed(bootstrap), interval_ms, options.seconds) for side in sides]
            for percentile in (50, 99):
                ours, rival = (round(float(np.percentile(times, percentile)), 1) for times in found)
                bench = f"event to snapshot, every {interval_ms} ms, p{percentile}"
                if interval_ms == 20 and percentile == 50:
                    figure(bench, ours, rival, BAR_20_MS, "ms, at most")
                else:
                    figure(bench, ours, rival, BAR, "ms, ratio at most")


if __name__ == "__main__":
    main()
