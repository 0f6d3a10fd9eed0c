"""What the benches of the trainer share: a job and its ready records on Kafka, and the plain Python loop as rival.

28 numbers and a 0/1 label a row, one row a record. Each loop runs in a process of its own, as a user's program would.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import msgpack
import numpy as np
import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from streamtrain.broker import start_broker
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import job_topics

NUMBERS = 28
NAMES = [f"f{at:02}" for at in range(1, NUMBERS + 1)] + ["late"]
PARTITIONS = 2
BATCH_ROWS = 256
_LAYER = '{ dense = 64, activation = "relu" }'
NETWORKS = {"logistic": "[]", "28-64-64-1": f"[{_LAYER}, {_LAYER}]"}
JOB_FILE = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records = {{ name = "{records}", partitions = {partitions} }}
[records]
format = "{format}"
[columns]
"f{{01..28}}" = {{ kind = "number" }}
late = {{ role = "label" }}
[model]
layers = {layers}
[optimizer]
name = "adam"
learning_rate = 1e-3
[train]
batch_rows = {batch_rows}
batch_growth = "off"                   # what is timed is full-grown batches
workers = {workers}
round_interval = "{round_interval}"
[publish]
interval = "{publish_interval}"
"""
LOADS: dict[str, Callable[[bytes], Any]] = {"msgpack": msgpack.unpackb, "json": orjson.loads}
spawn = multiprocessing.get_context("spawn")


def figure(bench: str, ours: float, rival: float, bar: float | None, unit: str, **more: Any) -> None:
    """One JSON line; the ratio says how often the rival goes into ours. `more` may name another ratio."""
    line = {"bench": bench, "ours": ours, "rival": rival, "ratio": round(ours / rival, 2), "bar": bar, "unit": unit}
    print(json.dumps({**line, **more}), flush=True)


@contextlib.contextmanager
def kafka_at(bootstrap: str | None) -> Iterator[str]:
    """The broker given, or an embedded one as long as the bench runs."""
    if bootstrap:
        yield bootstrap
        return
    with start_broker() as broker:
        yield broker.bootstrap


def rows(count: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """`count` x 29 whose label can be learned; numbers of seven digits, so that a JSON row has 447 bytes."""
    random = np.random.default_rng(seed)
    numbers = random.uniform(-12, 12, (count, NUMBERS)).round(4)
    label = numbers[:, 0] - numbers[:, 1] + random.normal(0, 3, count) > 0
    return np.column_stack([numbers, label]).astype(np.float32)


def encoded(format: str, count: int = 4096) -> list[bytes]:
    """Records of one row: msgpack, an array of 29 float32; JSON, an object."""
    table = rows(count)
    if format == "msgpack":
        return [msgpack.packb(row, use_single_float=True) for row in table.tolist()]
    named = [dict(zip(NAMES, [round(value, 4) for value in row], strict=True)) for row in table.tolist()]
    return [json.dumps({**row, "late": int(row["late"])}).encode() for row in named]


class Bed:
    """A topic full of records, and the jobs that read it."""

    def __init__(self, bootstrap: str, format: str = "msgpack", partitions: int = PARTITIONS) -> None:
        self.bootstrap, self.format, self.partitions, self.count = bootstrap, format, partitions, 0
        self.folder = Path(tempfile.mkdtemp(prefix="streamtrain-bench-"))
        self.records = f"bench-{uuid.uuid4().hex[:8]}.records"
        self.admin = Admin(bootstrap)
        self.job()

    def job(self, **settings: Any) -> Path:
        """The file of a new job over the same records; its topics are made."""
        given = {
            "name": f"bench-{uuid.uuid4().hex[:8]}", "bootstrap": self.bootstrap, "records": self.records,
            "partitions": self.partitions, "format": self.format, "layers": "[]", "batch_rows": BATCH_ROWS,
            "workers": 1, "round_interval": "250ms", "publish_interval": "1s", **settings,
        }  # fmt: skip
        path = self.folder / f"{given['name']}.toml"
        path.write_text(JOB_FILE.format(**given))
        topics = {key: value.model_dump(exclude_none=True) for key, value in Job.load(path).file.topics.items()}
        self.admin.ensure(job_topics(given["name"], topics))
        return path

    def fill(self, count: int, records: list[bytes] | None = None) -> None:
        """`count` more records, in turn over the partitions; 4,096 different ones."""
        records = records or encoded(self.format)
        producer = Producer({
            "bootstrap.servers": self.bootstrap, "linger.ms": 50, "batch.size": 500_000, "enable.idempotence": True,
            "queue.buffering.max.messages": 500_000,
        })  # fmt: skip
        for at in range(count):
            while True:
                try:
                    producer.produce(self.records, records[at & 4095], partition=at % self.partitions)
                    break
                except BufferError:
                    producer.poll(0.05)
        assert producer.flush(120) == 0
        self.count += count


def train(path: Path, *arguments: str) -> subprocess.Popen[str]:
    """`streamtrain train` of the job; its events on stdout."""
    command = [str(Path(sys.executable).parent / "streamtrain"), "train", str(path), *arguments, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def train_rate(bed: Bed, path: Path) -> float:
    """Rows a second of `streamtrain train --until-end`, from its first rows to the last round's publication."""
    process = train(path, "--until-end")
    assert process.stdout is not None
    begun: tuple[float, int] | None = None
    started = (time.perf_counter(), 0)
    ended = 0.0
    for line in process.stdout:
        now, event = time.perf_counter(), json.loads(line)
        if event["event"] == "started":
            started = (now, 0)
        if event["event"] == "progress" and event["rows"] and begun is None:
            begun = (now, event["rows"])
        if event["event"] == "published" and event["rows"] == bed.count:
            ended = now
    assert process.wait() == 0 and ended, process.stderr.read()[-3000:] if process.stderr else ""
    # a short run ends before its progress is looked at
    at, rows = begun if begun is not None and begun[1] < bed.count else started
    return (bed.count - rows) / (ended - at)


def _loop(bed: tuple[str, str, str, int], limit: int, learns: bool, answer: Any) -> None:
    """consume(), decode, NumPy and, if it learns, scikit-learn's partial_fit of a logistic model, by 256 rows."""
    bootstrap, topic, format, partitions = bed
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=1e-3)
    loads, is_map = LOADS[format], format == "json"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    done, begun, classes = 0, 0.0, np.array([0, 1])
    while done < limit:
        messages = consumer.consume(BATCH_ROWS, 10)
        if not begun:
            begun = time.perf_counter()
        loaded = [loads(message.value()) for message in messages if not message.error()]
        batch = np.array([list(row.values()) for row in loaded] if is_map else loaded, np.float32)
        if learns:
            model.partial_fit(batch[:, :NUMBERS], batch[:, NUMBERS].astype(np.int64), classes=classes)
        done += len(batch)
    answer.send((done - BATCH_ROWS) / (time.perf_counter() - begun))
    consumer.close()


def python_loop(bed: Bed, limit: int, learns: bool) -> tuple[Any, Any]:
    """The plain Python loop, started over the bed's first `limit` records: (process, pipe that gets its rate)."""
    ours, theirs = spawn.Pipe()
    where = (bed.bootstrap, bed.records, bed.format, bed.partitions)
    process = spawn.Process(target=_loop, args=(where, limit, learns, theirs))
    process.start()
    return process, ours


def python_rate(bed: Bed, limit: int, learns: bool = False) -> float:
    """Rows a second of the plain Python loop over the bed's first `limit` records."""
    process, ours = python_loop(bed, limit, learns)
    rate = ours.recv() if ours.poll(300) else 0.0
    process.join(30)
    return float(rate)


def in_turns(sides: dict[str, Callable[[], float]], turns: int) -> dict[str, float]:
    """The median of each side's measurements, taken in turns so that all meet the same machine."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, measure in sides.items():
            found[name].append(measure())
    return {name: statistics.median(values) for name, values in found.items()}
