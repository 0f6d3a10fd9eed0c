"""From topic to topic: one JSON row a record to packed records, exactly once, against a Python loop that promises less.

Prints one JSON line: rows a second of the process's CPU time, all its threads', librdkafka's among them. The loop is
consume(), orjson, RecordWriter's encoder and produce() of 256 rows, without transactions and positions.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from workbench import PARTITIONS, Bed, figure, in_turns, kafka_at

from streamtrain import Job
from streamtrain.clients.repacking import Repacker
from streamtrain.columns.records import Records
from streamtrain.topics.topic import TopicWish

FIGURES = 1  # lines of a whole run
SMOKE = ["--seconds", "0.5", "--turns", "1"]
TURNS = 3
RATE = 50_000  # records filled for each second of the bench
PACK = 256
BAR = 2.0


def target(bed: Bed, number: list[int]) -> str:
    """Another topic each time: a second run to the same one has nothing to do."""
    number[0] += 1
    name = f"{bed.records}.packed{number[0]}"
    bed.admin.ensure([TopicWish("records", name, PARTITIONS, 1, {}, fixed_partitions=False, owned=False)])
    return name


def cpu_rate(call: Callable[[str], int], to: str) -> float:
    begun = time.process_time()
    rows = call(to)
    return rows / (time.process_time() - begun)


def ours(bed: Bed, job: Job, to: str) -> int:
    *_, told = Repacker(job, bed.records, to, PACK).run()
    assert told.rows == bed.count
    return told.rows


def by_python(bed: Bed, job: Job, to: str, count: int) -> int:
    records = Records(job.schema, "packed", to, PACK, 1 << 20)
    producer = Producer({"bootstrap.servers": bed.bootstrap, "linger.ms": 5})
    consumer = Consumer({"bootstrap.servers": bed.bootstrap, "group.id": "bench", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(bed.records, partition, 0) for partition in range(bed.partitions)])
    done = 0
    while done < count:
        rows = [orjson.loads(message.value()) for message in consumer.consume(PACK, 1.0)]
        for block in records.blocks(rows, None, False):
            for record in block:
                producer.produce(to, record.value)
        done += len(rows)
    producer.flush()
    consumer.close()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    with kafka_at(options.bootstrap) as bootstrap:
        bed = Bed(bootstrap, "json")
        bed.fill(int(RATE * options.seconds))
        number, job = [0], Job.load(bed.job())
        sides = {
            "ours": lambda: cpu_rate(lambda to: ours(bed, job, to), target(bed, number)),
            "python": lambda: cpu_rate(lambda to: by_python(bed, job, to, bed.count // 4), target(bed, number)),
        }
        found = {name: round(rate) for name, rate in in_turns(sides, options.turns).items()}
        text = "JSON rows to packed records, topic to topic / Python loop"
        nanoseconds = round(1e9 / found["ours"])
        figure(text, found["ours"], found["python"], BAR, "rows/s of CPU time", cpu_ns_a_row=nanoseconds)


if __name__ == "__main__":
    main()
