"""RecordWriter against orjson.dumps and produce() of the same rows: 28 numbers and a label. No broker: all stays put.

CPU time of the one thread that writes, so that a busy machine tells the same; the sides take turns.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from confluent_kafka import Producer
from workbench import NAMES, figure, in_turns, rows

from streamtrain import Job, RecordWriter
from streamtrain.columns.records import Records

FIGURES = 6
NOWHERE = "127.0.0.1:9"
QUEUE = {"queue.buffering.max.messages": "5000000", "queue.buffering.max.kbytes": "2000000", "log_level": "0"}
TURNS = 5
PACK = 256
JOB = """
name = "bench"
[kafka]
bootstrap.servers = "{bootstrap}"
[records]
format = "{format}"
[columns]
"f{{01..28}}" = {{}}
late = {{ role = "label" }}
"""


def job(format_name: str) -> Job:
    return Job.parse(
        JOB.format(bootstrap=NOWHERE, format=format_name), sets=[f"kafka.{name}={text}" for name, text in QUEUE.items()]
    )


def rate(call: Callable[[], int], seconds: float) -> float:
    """Rows a second of CPU time."""
    call()
    done, begun = 0, time.thread_time()
    while (spent := time.thread_time() - begun) < seconds:
        done += call()
    return done / spent


def ours(format_name: str, write: Callable[[RecordWriter], int], seconds: float) -> float:
    writer = RecordWriter(job(format_name))
    writer._last_words.detach()  # nothing is to be delivered
    try:
        return rate(lambda: write(writer), seconds)
    finally:
        writer._outbox._producer.purge()


def theirs(write: Callable[[Producer], int], seconds: float) -> float:
    producer = Producer({**QUEUE, "bootstrap.servers": NOWHERE, "linger.ms": "5", "enable.idempotence": True})
    try:
        return rate(lambda: write(producer), seconds)
    finally:
        producer.purge()


def one_by_one(given: list[dict[str, float]]) -> Callable[[Producer], int]:
    def write(producer: Producer) -> int:
        for row in given:
            producer.produce("bench.records", orjson.dumps(row))
        return len(given)

    return write


def together(given: list[dict[str, float]]) -> Callable[[Producer], int]:
    def write(producer: Producer) -> int:
        producer.produce("bench.records", orjson.dumps(given))
        return len(given)

    return write


def singly(given: list[dict[str, float]]) -> Callable[[RecordWriter], int]:
    def write(writer: RecordWriter) -> int:
        for row in given:
            writer.write(row)
        return len(given)

    return write


def arrays(dtype: str, seconds: float) -> float:
    """Columns → packed records of 256 rows, not handed to librdkafka."""
    table = rows(65_536).astype(dtype)
    columns = {name: np.ascontiguousarray(table[:, at]) for at, name in enumerate(NAMES)}
    made = Records(job("packed").schema, "packed", "bench.records", PACK, 900_000)

    def encode() -> int:
        return sum(record.rows for block in made.blocks(columns, None, False) for record in block)

    return rate(encode, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="in all")
    seconds = parser.parse_args().seconds / TURNS / 8
    given: list[dict[str, Any]] = [dict(zip(NAMES, row, strict=True)) for row in rows(PACK).round(4).tolist()]
    found = in_turns(
        {
            "packed": lambda: ours("packed", lambda writer: writer.write(given), seconds),
            "rows": lambda: theirs(one_by_one(given), seconds),
            "list": lambda: theirs(together(given), seconds),
            "msgpack": lambda: ours("msgpack", singly(given), seconds),
            "json": lambda: ours("json", singly(given), seconds),
            "f4": lambda: arrays("f4", seconds),
            "f8": lambda: arrays("f8", seconds),
        },
        TURNS,
    )
    loop = "orjson.dumps + produce"
    figure(f"256 dicts, packed / {loop} of each", found["packed"], found["rows"], 2, "rows/s")
    figure(f"256 dicts, packed / {loop} of the list", found["packed"], found["list"], 2, "rows/s")
    figure(f"one dict, msgpack / {loop}", found["msgpack"], found["rows"], 1, "rows/s")
    figure(f"one dict, json / {loop}", found["json"], found["rows"], None, "rows/s")
    figure("float32 arrays encoded to packed / 10 M rows/s", found["f4"], 10e6, 1, "rows/s")
    figure("float64 arrays encoded to packed / 10 M rows/s", found["f8"], 10e6, 1, "rows/s")
    os._exit(0)  # what is queued is not waited for


if __name__ == "__main__":
    main()
