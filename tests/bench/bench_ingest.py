"""Ingest and decode alone, through Kafka into the ring, against librdkafka in C that decodes nothing and a Python loop.

A drain frees the slots, so nothing is trained. Each side reads the same records from their beginning, in turns.
"""

from __future__ import annotations

import argparse
import os
import threading
import time

from raw_consume import raw_consume
from workbench import Bed, figure, in_turns, kafka_at, python_rate

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.compute.model import Model
from streamtrain.job import Job
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.settings import Purpose

FIGURES = 4  # lines of a whole run
SMOKE = ["--seconds", "1", "--turns", "1"]

TURNS = 5
RATES = {"msgpack": 250_000, "json": 150_000}  # records filled for each second of the bench
BARS = {"msgpack": (0.9, 6.0), "json": (None, 5.0)}  # of the C consumer, of the Python loop


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
    positions = [(partition, 0, 0) for partition in range(bed.partitions)]
    ring = _native.CoordinatorEnd(arena)
    ring.begin(round=-1, learning_rate=0.001, positions=positions)
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


def raw_rate(bed: Bed) -> float:
    """Messages a second that librdkafka gives a C loop with the ingest's own settings."""
    messages, _, seconds = raw_consume(bed.bootstrap, bed.records, bed.partitions, bed.count)
    assert messages == bed.count
    return float(messages / seconds)


def measure(bootstrap: str, format: str, seconds: float, turns: int) -> None:
    bed = Bed(bootstrap, format)
    bed.fill(int(RATES[format] * seconds))
    sides = {
        "ours": lambda: ingest_rate(bed),
        "raw": lambda: raw_rate(bed),
        "python": lambda: python_rate(bed, bed.count // 8),
    }
    found = {name: round(rate) for name, rate in in_turns(sides, turns).items()}
    raw_bar, python_bar = BARS[format]
    figure(f"ingest {format}, one row a record / librdkafka in C", found["ours"], found["raw"], raw_bar, "rows/s")
    figure(f"ingest {format}, one row a record / Python loop", found["ours"], found["python"], python_bar, "rows/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    with kafka_at(options.bootstrap) as bootstrap:
        for format in RATES:
            measure(bootstrap, format, options.seconds, options.turns)


if __name__ == "__main__":
    main()
