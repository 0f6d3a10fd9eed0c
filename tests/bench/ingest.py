"""Records from Kafka: ingest alone, `train`, and repacking, against librdkafka in C++ and plain Python loops."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping

from confluent_kafka import Producer

from streamtrain import Job, _native
from streamtrain.clients.repacking import Repacker
from streamtrain.columns.plan import native_plan
from streamtrain.columns.records import Records
from streamtrain.compute.model import Model
from streamtrain.kafka import library
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.topics.topic import TopicWish
from tests.bench.bed import NETWORKS, PARTITIONS, Bed, consumed, logistic, python_rate, train_rate
from tests.bench.harness import CHECKOUT, Line, Run, Sides, bench, compiled, in_turns

INGESTED = {"msgpack": 250_000, "json": 150_000}  # records filled for each second of the bench
TRAINED = 750_000  # a run lasts two seconds, of which its last publication is a tenth
REPACKED, PACK = 50_000, 256
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
        ingest = _native.Ingest(_native.RoundCutter(arena), source, job.records.format, native_plan(job.schema, slots))
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
def train(run: Run) -> Sides:
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


def cpu_rate(bed: Bed, call: Callable[[str], int]) -> float:
    """Rows a second of the process's CPU time, to another topic each time: one that is full has nothing to do."""
    to = f"{bed.records}.{time.monotonic_ns()}"
    bed.admin.ensure([TopicWish("records", to, PARTITIONS, 1, {}, fixed_partitions=False, owned=False)])
    begun = time.process_time()
    rows = call(to)
    return rows / (time.process_time() - begun)


def repacked(bed: Bed, job: Job, to: str) -> int:
    *_, found = Repacker(job, bed.records, to, PACK).run()
    assert found.rows == bed.count
    return int(found.rows)


def by_python(bed: Bed, job: Job, to: str, count: int) -> int:
    records = Records(job.schema, "packed", to, PACK, 1 << 20)
    producer = Producer({"bootstrap.servers": bed.bootstrap, "linger.ms": 5})
    done = 0
    for rows in consumed(bed.bootstrap, bed.records, count, bed.format):
        for block in records.blocks(rows, None, False):
            for record in block:
                producer.produce(to, record.value)
        done += len(rows)
    producer.flush()
    return done


@bench(
    "repacking",
    [Line("JSON rows to packed records, topic to topic", "repack", LOOP, 2.0)],
    in_turns, "rows/s of CPU time", {"seconds": 0.5}, seconds=8.0, turns=3,
)  # fmt: skip
def repacking(run: Run) -> Sides:
    """Repacking exactly once, against a Python loop without transactions that uses RecordWriter's encoder. CPU time of
    all threads."""
    bed = Bed(run.kafka, "json")
    bed.fill(int(REPACKED * run.seconds))
    job = Job.load(bed.job())
    return {
        "repack": lambda: cpu_rate(bed, lambda to: repacked(bed, job, to)),
        LOOP: lambda: cpu_rate(bed, lambda to: by_python(bed, job, to, bed.count // 4)),
    }
