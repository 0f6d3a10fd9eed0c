"""Records from Kafka: ingest alone and `train`, against librdkafka in C++ and plain Python loops; from an event
to a snapshot that has learned it, the memory of all processes, and a DeepFM."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from streamtrain import Job, _native
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.compute.model import Model
from streamtrain.kafka import library
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.topics.topic import TopicWish
from tests.bench.bed import (
    BATCH_ROWS,
    NETWORKS,
    PARTITIONS,
    Bed,
    events,
    logistic,
    python_loop,
    python_rate,
    records_of,
    spawn,
    train,
    train_rate,
)
from tests.bench.harness import CHECKOUT, LIMIT, MOST, Line, Run, Sides, bench, compiled, in_turns, once

INGESTED = {"msgpack": 250_000, "json": 150_000}  # records filled for each second of the bench
TRAINED = 750_000  # a run lasts two seconds, of which its last publication is a tenth
SHARE = {"logistic": 0.7, "28-64-64-1": {"v4": 0.7, "v3": 0.5, "v2": 0.5}}  # of ingest alone
LIBRDKAFKA, LOOP = "librdkafka in C++", "Python loop"


def raw_rate(bed: Bed) -> float:
    """Messages a second that librdkafka gives a C++ loop with the ingest's own settings, from the first arrival on."""
    settings = client_settings(Purpose.INGEST, {"bootstrap.servers": bed.bootstrap}, {"group.id": "raw"})
    arguments = [str(library.find()), bed.records, str(bed.partitions), str(bed.count)]
    sources = (str(CHECKOUT / "native" / "kafka" / f"{name}.cpp") for name in ("client", "consumer", "library"))
    program = compiled("raw_consume.cpp", *sources, "-O2", "-pthread", "-ldl")
    command = [program, *arguments, *(f"{name}={value}" for name, value in settings.items())]
    messages, _, seconds = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(messages) == bed.count
    return int(messages) / float(seconds)


def drain_ring(arena: _native.Arena, ring: _native.CoordinatorEnd, done: threading.Event) -> None:
    """Frees every slot soon after it is filled, as if training cost nothing; not woken for each: that takes a tenth."""
    while not done.wait(0.0005):
        ring.release_slots(arena.progress()["slots_filled"])
        ring.beat()


def ingest_rate(bed: Bed) -> float:
    """Rows a second from the first slot to the last record; the process does nothing else."""
    job = Job.load(bed.job())
    slots = _native.SlotLayout.make(job.train.batch_rows, 512, job.schema.block_specs())
    arena = _native.Arena.create(
        workers=1, averaging_frequency=4, slot_count=24, slot_layout=slots, state_layout=Model(job.model_spec()).layout
    )
    ring = _native.CoordinatorEnd(arena)
    ring.begin(round=-1, learning_rate=0.001, positions=[(partition, 0, 0) for partition in range(bed.partitions)])
    ring.start()
    drained = threading.Event()
    drain = threading.Thread(target=drain_ring, args=(arena, ring, drained))
    drain.start()
    ends = list(enumerate(bed.admin.last_stable(bed.records, bed.partitions)))
    with KafkaConsumer.open(Purpose.INGEST, job.kafka_consumer()) as consumer:
        source = _native.KafkaSource(consumer.native, bed.records, end_offsets=ends, bounded=True)
        ingest = _native.Ingest(_native.RoundCutter(arena), source, job.records.format, job.schema.native_plan(slots))
        ingest.start()
        while not (first := arena.progress()["rows"]):
            ingest.run(0.001)
        begun = time.perf_counter()
        while ingest.run(1.0) == _native.IngestStatus.WORKING:
            pass
        spent = time.perf_counter() - begun
    drained.set()
    drain.join()
    assert arena.progress()["rows"] == bed.count
    return float((bed.count - first) / spent)


@bench(
    "ingest",
    {
        (format,): [
            Line(f"{format}, one row a record", "ingest", LIBRDKAFKA, raw),
            Line(f"{format}, one row a record", "ingest", LOOP, loop),
        ]
        for format, raw, loop in (("msgpack", 0.9, 6.0), ("json", None, 5.0))
    },
    in_turns, "rows/s", seconds=16.0, turns=5,
)  # fmt: skip
def ingest(run: Run, format: str) -> Sides:
    """Records from Kafka decoded into the ring, nothing trained, against librdkafka in C++ and a Python loop with
    NumPy."""
    bed = Bed(run.kafka, format)
    bed.fill(int(INGESTED[format] * run.seconds))
    return {
        "ingest": lambda: ingest_rate(bed), LIBRDKAFKA: lambda: raw_rate(bed),
        LOOP: lambda: python_rate(bed, bed.count // 8, logistic, False),
    }  # fmt: skip


@bench(
    "train",
    [
        line
        for network, share in SHARE.items()
        for line in (
            Line(network, network, LOOP, 5.0),
            Line(network, network, "ingest alone", share),
        )
    ],
    in_turns, "rows/s", seconds=8.0, turns=3,
)  # fmt: skip
def train_beside(run: Run) -> Sides:
    """`streamtrain train` with one worker, against a plain Python loop with scikit-learn's logistic model, and against
    ingest alone."""
    bed = Bed(run.kafka)
    bed.fill(int(TRAINED * run.seconds))
    ours: Mapping[str, Callable[[], float]] = {
        name: lambda model=model: train_rate(bed, bed.job(model=model)) for name, model in NETWORKS.items()
    }
    return {
        **ours, "ingest alone": lambda: ingest_rate(bed),
        LOOP: lambda: python_rate(bed, bed.count // 8, logistic, True),
    }  # fmt: skip


RATE = 10_000  # rows a second
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


def percentiles_ms(source: Source, newest: Iterator[list[int]], seconds: float) -> dict[str, float]:
    """`newest` gives the offsets a follower's newest snapshot has learned, each time it gets one."""
    known, found, warm_until = [0] * PARTITIONS, list[float](), 0.0
    for offsets in newest:
        now = time.time()
        warm_until = warm_until or now + WARM_S  # from the first snapshot on: a start is no delay
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
            newest = ([at.offset for at in snapshot.manifest.positions.partitions] for snapshot in snapshots)
            return percentiles_ms(source, newest, seconds)
    finally:
        process.terminate()
        process.wait(60)
        drained.join()


def of_loop(bed: Bed, interval_ms: int, seconds: float) -> dict[str, float]:
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
    """The time from an event to a snapshot that has learned it, at 10,000 rows a second. The rival is a Python loop
    that trains scikit-learn's logistic model and writes coefficients and offsets as often, in a transaction."""
    kafka = run.kafka
    return {
        "train": lambda: of_streamtrain(Bed(kafka), interval_ms, run.seconds),
        "Python loop": lambda: of_loop(Bed(kafka), interval_ms, run.seconds),
    }


SAMPLE_S, PYTHON_ROWS = 0.2, 300_000
TWO_WORKERS = 'round_interval = "250ms"\nworkers = 2'
PYTHON = "Python loop"


def pss_mb(pid: int) -> tuple[int, float]:
    """(processes, their PSS): the process and all its children; memory they share is counted once."""
    try:
        tree = [process := psutil.Process(pid), *process.children(recursive=True)]
        return len(tree), sum(each.memory_full_info().pss for each in tree) / 1e6
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0, 0.0


class Sampler:
    """Samples a process tree between start() and stop()."""

    def __init__(self, pid: int) -> None:
        self._samples: list[tuple[int, float]] = []
        self._pid, self._done = pid, threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._done.is_set():
            self._samples.append(pss_mb(self._pid))
            self._done.wait(SAMPLE_S)

    def stop(self) -> dict[str, float]:
        """The peaks: of all, and of the first and the last third."""
        self._done.set()
        self._thread.join()
        whole = max(count for count, _ in self._samples)  # once one has ended, it is no longer the run
        found = [pss for count, pss in self._samples if count == whole]
        third = max(1, len(found) // 3)
        return {"all": max(found), "first": max(found[:third]), "last": max(found[2 * len(found) // 3 :])}


def of_train(bed: Bed, *more: str) -> tuple[dict[str, float], int]:
    """(peaks from the start of ingest to the last row or dead letter, dead letters) of a run over all records."""
    process = train(bed.job(train=TWO_WORKERS, model=NETWORKS["28-64-64-1"]), "--until-end", *more)
    sampler: Sampler | None = None
    peaks: dict[str, float] = {}
    dead = 0
    for event in events(process):
        if event["event"] == "started":
            sampler = Sampler(process.pid)
        elif event["event"] == "progress" and event["rows"] == bed.count and sampler and not peaks:
            peaks = sampler.stop()
        dead += sum(event["dead_letters"].values()) if event["event"] == "published" else 0
    assert sampler is not None
    return peaks or sampler.stop(), dead


def of_flood(kafka: str, count: int) -> dict[str, float]:
    """Peaks of a run that gets nothing but bad records."""
    bed = Bed(kafka)
    bed.fill(count, [b"not a record %d" % at for at in range(4096)])
    peaks, dead = of_train(bed, "--set", "records.max_dead_letter_share=1")
    assert dead == count, (dead, count)
    return peaks


def of_python(bed: Bed, limit: int) -> dict[str, float]:
    with python_loop(bed, limit, logistic, True) as (process, answer):
        sampler = Sampler(process.pid)
        assert answer.poll(300)
        return sampler.stop()


@bench(
    "memory",
    [
        Line("train, 2 workers, PSS", "train:all", f"{PYTHON}:all", 400.0, LIMIT),
        Line("train, 2 workers, last third / first third", "train:last", "train:first", 1.05, MOST),
        Line("train on bad records", "bad records:all", f"{PYTHON}:all", 400.0, LIMIT),
    ],
    once, "MB", {"rows": 20_000}, rows=5_000_000,
)  # fmt: skip
def memory(run: Run) -> Sides:
    """The PSS of all processes of `streamtrain train`, of good and of bad records, against a plain Python loop; and
    whether it is flat."""
    kafka = run.kafka
    bed = Bed(kafka)
    bed.fill(run.rows)
    return {
        "train": lambda: of_train(bed)[0], PYTHON: lambda: of_python(bed, min(bed.count, PYTHON_ROWS)),
        "bad records": lambda: of_flood(kafka, run.rows),
    }  # fmt: skip


RECORDS_A_SECOND = 40_000  # of the bench
NUMBERS, CATEGORIES, BUCKETS, WIDTH = 13, 26, 10_000, 16
LAYERS = (64, 32)
COLUMNS = f"""
"I{{1..13}}" = {{}}
"C{{1..26}}" = {{ kind = "category", buckets = {BUCKETS}, embed = 16 }}
late = {{ role = "label" }}
"""
MODEL = f"""
[model.graph]
linear = {{ dense = 1, of = "input" }}
fields = {{ concat = [{", ".join(f'"input.C{at}"' for at in range(1, CATEGORIES + 1))}] }}
pairs = {{ factorization = "fields", width = 16 }}
first = {{ dense = 64, activation = "relu", of = "input" }}
second = {{ dense = 32, activation = "relu", of = "first" }}
deep = {{ dense = 1, of = "second" }}
output = {{ add = ["linear", "pairs", "deep"] }}
"""


def records(count: int = 4096) -> list[bytes]:
    """A row each: numbers, categories, of which some are far more frequent than others, and a label."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(count, NUMBERS)).astype(np.float32)
    categories = (BUCKETS * random.random((count, CATEGORIES)) ** 3).astype(np.int64)
    label = (numbers[:, 0] + categories[:, 0] % 3 - 1 > 0).astype(np.int64)
    table = zip(numbers.tolist(), categories.tolist(), label.tolist(), strict=True)
    return [msgpack.packb([*x, *its, y], use_single_float=True) for x, its, y in table]


def network() -> tuple[Any, Any, Any]:
    """The network in PyTorch: the table, the rest, and logits of (numbers, indexes) by both."""
    import torch
    from torch import nn

    table = nn.Embedding(CATEGORIES * BUCKETS, WIDTH, sparse=True)
    inputs = NUMBERS + CATEGORIES * WIDTH
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise([inputs, *LAYERS]):
        parts += [nn.Linear(before, after), nn.ReLU()]
    dense = nn.ModuleDict({"linear": nn.Linear(inputs, 1), "deep": nn.Sequential(*parts, nn.Linear(LAYERS[-1], 1))})

    def logits(numbers: Any, indexes: Any) -> Any:
        factors = table(indexes)
        x = torch.cat([numbers, factors.flatten(1)], 1)
        pairs = (factors.sum(1).square() - factors.square().sum(1)).sum(1, keepdim=True) / 2
        return (dense["linear"](x) + pairs + dense["deep"](x))[:, 0]

    return table, dense, logits


def learner() -> Callable[[np.ndarray[Any, Any]], None]:
    """One batch in PyTorch's best form: one table, SparseAdam for it and fused Adam for the rest, one thread."""
    import torch

    torch.set_num_threads(1)
    table, dense, logits = network()
    optimizers = [torch.optim.SparseAdam(table.parameters(), lr=1e-3),
                  torch.optim.Adam(dense.parameters(), lr=1e-3, fused=True)]  # fmt: skip
    loss, offsets = torch.nn.BCEWithLogitsLoss(), torch.arange(CATEGORIES) * BUCKETS

    def learn(batch: np.ndarray[Any, Any]) -> None:
        rows = torch.from_numpy(batch)
        indexes = rows[:, NUMBERS:-1].long() + offsets
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(logits(rows[:, :NUMBERS], indexes), rows[:, -1]).backward()
        for optimizer in optimizers:
            optimizer.step()

    return learn


@bench(
    "deepfm", [Line("26 x 16 from Kafka", "train", "PyTorch", 5.0)],
    in_turns, "rows/s", needs=("torch",), seconds=20.0, turns=3,
)  # fmt: skip
def deepfm(run: Run) -> Sides:
    """`streamtrain train` of a DeepFM with one worker, against the network in PyTorch, which publishes nothing."""
    bed = Bed(run.kafka, columns=COLUMNS, model=MODEL, train="averaging_frequency = 64", publish_interval="10s")
    bed.fill(int(RECORDS_A_SECOND * run.seconds), records())
    return {"train": lambda: train_rate(bed, bed.job()), "PyTorch": lambda: python_rate(bed, bed.count // 8, learner)}


@bench(
    "large_table", [Line("a table of 10^6 x 16, Adam, defaults", "10^6 rows", "10^3 rows", 0.1)],
    in_turns, "rows/s", {"seconds": 0.2}, seconds=8.0, turns=2,
)  # fmt: skip
def large_table(run: Run) -> Sides:
    """`streamtrain train` by defaults with one worker and an embedding of a million rows, against one of a thousand."""
    columns = """
id = {{ kind = "category", buckets = {0}, embed = 16 }}
late = {{ role = "label" }}
"""
    small, large = (Bed(run.kafka, "json", columns=columns.format(size), growth=4000) for size in (10**3, 10**6))
    rows = [json.dumps({"id": f"u{at * 7919 % 10**6}", "late": at % 3 % 2}).encode() for at in range(200_000)]
    for bed, share in (small, 4), (large, 3):
        bed.fill(int(100_000 * run.seconds * share), rows)
    return {"10^6 rows": lambda: train_rate(large, large.job()), "10^3 rows": lambda: train_rate(small, small.job())}
