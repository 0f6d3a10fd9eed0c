"""Shared parts of the benches: a job with its records on Kafka, the plain Python loop as rival, each in a process of
its own; and a job's training without Kafka, in threads of this process."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from streamtrain import _native
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import Model
from streamtrain.compute.state import view, views
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.run.arena import make_arena
from streamtrain.run.ready import round_cutter
from streamtrain.topics.topic import job_topics

NUMBERS = 28
NAMES = [f"f{at:02}" for at in range(1, NUMBERS + 1)] + ["late"]
PARTITIONS = 2
BATCH_ROWS = 256
STREAMTRAIN = str(Path(sys.executable).parent / "streamtrain")
_LAYER = '{ dense = 64, activation = "relu" }'
NETWORKS = {"logistic": "layers = []", "28-64-64-1": f"layers = [{_LAYER}, {_LAYER}]"}
ROW = """
"f{01..28}" = { kind = "number" }
late = { role = "label" }
"""
JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records = {{ name = "{records}", partitions = {partitions} }}
[records]
format = "{format}"
[columns]
{columns}
[model]
{model}
[optimizer]
name = "adam"
learning_rate = 1e-3
[train]
batch_rows = {batch_rows}
batch_growth = {growth}
{train}
[publish]
interval = "{publish_interval}"
"""
DEFAULTS = {
    "name": "bench", "records": "bench.records", "partitions": PARTITIONS, "format": "msgpack", "columns": ROW,
    "model": NETWORKS["logistic"], "batch_rows": BATCH_ROWS, "growth": '"off"', "train": 'round_interval = "250ms"',
    "publish_interval": "1s",
}  # fmt: skip
LOADS: dict[str, Callable[[bytes], Any]] = {"msgpack": msgpack.unpackb, "json": orjson.loads}
spawn = multiprocessing.get_context("spawn")


def job_text(bootstrap: str, **settings: Any) -> str:
    """The job file of the 28 numbers, or of other columns."""
    return JOB.format(**{**DEFAULTS, "bootstrap": bootstrap, **settings})


def fresh_name() -> str:
    return f"bench-{uuid.uuid4().hex[:8]}"


def table(count: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """`count` x 29 whose label can be learned; numbers of seven digits, so that a JSON row has 447 bytes."""
    random = np.random.default_rng(seed)
    numbers = random.uniform(-12, 12, (count, NUMBERS)).round(4)
    label = numbers[:, 0] - numbers[:, 1] + random.normal(0, 3, count) > 0
    return np.column_stack([numbers, label]).astype(np.float32)


def records_of(format: str, count: int = 4096) -> list[bytes]:
    """Records of one row: msgpack, an array of 29 float32; JSON, an object."""
    rows = table(count).tolist()
    if format == "msgpack":
        return [msgpack.packb(row, use_single_float=True) for row in rows]
    named = [dict(zip(NAMES, [round(value, 4) for value in row], strict=True)) for row in rows]
    return [json.dumps({**row, "late": int(row["late"])}).encode() for row in named]


class Bed:
    """A topic full of records, and the jobs that read it."""

    def __init__(self, bootstrap: str, format: str = "msgpack", **settings: Any) -> None:
        self.bootstrap, self.format, self.partitions, self.count = bootstrap, format, PARTITIONS, 0
        self.folder = Path(tempfile.mkdtemp(prefix="streamtrain-bench-"))
        self.records = f"{fresh_name()}.records"
        self.admin = Admin(bootstrap)
        self._settings = {"records": self.records, "format": format, **settings}
        self.job()

    def job(self, **settings: Any) -> Path:
        """The file of a new job over the same records; its topics are made."""
        name = fresh_name()
        path = self.folder / f"{name}.toml"
        path.write_text(job_text(self.bootstrap, **{**self._settings, "name": name, **settings}))
        topics = {key: value.model_dump(exclude_none=True) for key, value in Job.load(path).file.topics.items()}
        self.admin.ensure(job_topics(name, topics))
        return path

    def fill(self, count: int, records: list[bytes] | None = None) -> None:
        """`count` more records, in turn over the partitions; as many different ones as are given."""
        records = records or records_of(self.format)
        producer = Producer({
            "bootstrap.servers": self.bootstrap, "linger.ms": 50, "batch.size": 500_000, "enable.idempotence": True,
            "queue.buffering.max.messages": 500_000,
        })  # fmt: skip
        for at in range(count):
            producer.produce(self.records, records[at % len(records)], partition=at % self.partitions)
            if at % 250_000 == 0:  # half of what the producer may hold
                producer.flush(120)
        assert producer.flush(120) == 0
        self.count += count


def train(path: Path, *arguments: str) -> subprocess.Popen[str]:
    """`streamtrain train` of the job; its events on stdout."""
    command = [STREAMTRAIN, "train", str(path), *arguments, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yields the events of a command until it has ended well."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)
    assert process.wait() == 0, process.stderr.read()[-3000:] if process.stderr else ""


def train_rate(bed: Bed, path: Path) -> float:
    """Rows a second of `streamtrain train --until-end`, from its first rows to the last round's publication."""
    begun: tuple[float, int] | None = None
    started, ended = (time.perf_counter(), 0), 0.0
    for event in events(train(path, "--until-end")):
        now = time.perf_counter()
        if event["event"] == "started":
            started = (now, 0)
        if event["event"] == "progress" and event["rows"] and begun is None:
            begun = (now, event["rows"])
        if event["event"] == "published" and event["rows"] == bed.count:
            ended = now
    assert ended
    # a short run ends before its progress is looked at
    at, rows = begun if begun is not None and begun[1] < bed.count else started
    return (bed.count - rows) / (ended - at)


def consumed(
    bootstrap: str, topic: str, limit: int, format: str = "msgpack", partitions: int = PARTITIONS
) -> Iterator[list[Any]]:
    """The topic's first `limit` records as Python objects, 256 at a time, as a plain Python loop has them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    done, loads = 0, LOADS[format]
    while done < limit:
        loaded = [loads(message.value()) for message in consumer.consume(BATCH_ROWS, 10) if not message.error()]
        yield loaded
        done += len(loaded)
    consumer.close()


def logistic(learns: bool) -> Callable[[np.ndarray[Any, Any]], object]:
    """scikit-learn's partial_fit of a logistic model on a batch; or nothing."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=1e-3)
    return lambda batch: (
        learns and model.partial_fit(batch[:, :NUMBERS], batch[:, NUMBERS].astype(np.int64), classes=np.array([0, 1]))
    )


def _loop(answer: Any, where: tuple[str, str, int, str], learner: Callable[..., Any], *arguments: Any) -> None:
    """consume(), decode, NumPy, and the learner; its rate goes into the pipe. The first batch is not counted."""
    learn, done, begun = learner(*arguments), 0, 0.0
    for rows in consumed(*where):
        begun = begun or time.perf_counter()
        batch = np.array([list(row.values()) for row in rows] if where[-1] == "json" else rows, np.float32)
        learn(batch)
        done += len(batch)
    answer.send((done - BATCH_ROWS) / (time.perf_counter() - begun))


@contextmanager
def python_loop(bed: Bed, limit: int, learner: Callable[..., Any], *arguments: Any) -> Iterator[tuple[Any, Any]]:
    """The plain Python loop over the bed's first `limit` records: (its process, the pipe that gets its rate)."""
    ours, theirs = spawn.Pipe()
    where = (bed.bootstrap, bed.records, limit, bed.format)
    process = spawn.Process(target=_loop, args=(theirs, where, learner, *arguments))
    process.start()
    yield process, ours
    process.join(30)


def python_rate(bed: Bed, limit: int, learner: Callable[..., Any], *arguments: Any) -> float:
    """Rows a second of the plain Python loop."""
    with python_loop(bed, limit, learner, *arguments) as (_, pipe):
        return float(pipe.recv()) if pipe.poll(300) else 0.0


def trained(job: Job, records: Sequence[bytes]) -> dict[str, float]:
    """Returns the figures of one pass on the CPU, every row scored before it is learned, and the number of updates."""
    train, model = job.train, Model(job.model_spec())
    arena, layout = make_arena(job, model), model.layout.published(train.workers)
    start = view(arena.mean_address(0), layout.state_bytes)
    model.layout.begin_lineage(model.initial_state(train.seed), train.workers, start)
    ring = _native.CoordinatorEnd(arena)
    ring.begin(round=-1, learning_rate=job.optimizer.learning_rate, positions=[(0, 0, 0)])
    log = _native.RoundLogThread(ring)
    log.start()
    ring.start()
    source, cutter = _native.MemorySource(), round_cutter(arena, None, train.batch_growth, job.rounds.min_batch_rows)
    ingest = _native.Ingest(cutter, source, job.records.format, job.schema.native_plan(arena.slot_layout))

    def take() -> None:
        ingest.start()
        while ingest.run(1.0) == _native.IngestStatus.WORKING:
            ring.beat()

    def work(index: int) -> None:
        worker = _native.Worker(arena, index)
        addresses = (worker.state_address, worker.base_address, worker.share_address)
        plan = model.compile("cpu", arena.slot_layout, *addresses)
        while worker.run(plan, 1.0) == _native.WorkerStatus.WORKING:
            pass

    with ThreadPoolExecutor(train.workers + 1) as pool:
        running = [pool.submit(take), *(pool.submit(work, index) for index in range(train.workers))]
        assert all(source.put(record, 600.0) for record in records)
        source.end()
    for each in running:
        each.result()
    state = views(layout, view(arena.mean_address(ring.pin_newest()[0]), layout.state_bytes).copy())
    scores = {name: array for name, array in state.items() if name.startswith("score.")}
    return {**summary(scores), "updates": int(state["optimizer.steps"].reshape(-1)[0])}
