"""Rows to records without a broker: files, as `produce` and `fit` read them and `vectorize` does, and RecordWriter."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.csv
from confluent_kafka import Producer

from streamtrain import Job, RecordWriter
from streamtrain.columns.records import Records
from streamtrain.files.blocks import Size
from streamtrain.files.reading import read_blocks
from streamtrain.files.records import FileRecords
from streamtrain.files.wanted import Wanted
from tests.bench.bed import NAMES, job_text, table
from tests.bench.harness import Line, Run, Sides, bench, in_turns, rates

PACK = 256
QUEUE = {"queue.buffering.max.messages": "5000000", "queue.buffering.max.kbytes": "2000000", "log_level": "0"}
NOWHERE = "127.0.0.1:9"


def file_of(columns: int, rows: int, folder: Path) -> tuple[Job, str]:
    """A job of so many numbers, and a CSV file of its rows."""
    names = [f"x{i}" for i in range(columns)]
    settings: dict[str, Any] = {**{name: {"missing": 0} for name in names}, "y": {"role": "label"}}
    job = Job.from_tables({"columns": settings, "model": {"loss": "mean_squared_error"}})
    cells = np.random.default_rng(1).normal(size=(rows, columns + 1)).round(5)
    path = folder / f"{columns}.csv"
    np.savetxt(path, cells, "%.5f", ",", header=",".join([*names, "y"]), comments="")
    return job, str(path)


def to_records(job: Job, path: str) -> int:
    records = Records(job.schema, "packed", "bench", PACK, 1 << 20)
    blocks = read_blocks([path], Wanted(job.schema), Size(4_096, PACK))
    return sum(record.rows for block in blocks for some in records.blocks(block, None, False) for record in some)


def by_python(path: str) -> int:
    rows = 0
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        while part := list(islice(reader, PACK)):
            orjson.dumps([{name: float(cell) for name, cell in row.items()} for row in part])
            rows += len(part)
    return rows


def to_columns(job: Job, path: str) -> int:
    plan = job.plan()
    return sum(batch.count for batch in plan.batches(FileRecords(job, [path], format=plan.bare), bare=True, copy=False))


def by_pyarrow(path: str) -> int:
    read = pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(use_threads=False))
    return len(np.column_stack([column.to_numpy().astype(np.float32) for column in read.columns]))


@bench(
    "files",
    {
        (1_000,): [Line("1,000 columns of CSV to packed records", "records", "csv + float + orjson", 3)],
        (28,): [
            Line("28 columns of CSV to packed records", "records", "csv + float + orjson", 3),
            Line("28 columns of CSV to columns of the model", "columns", "pyarrow, one thread"),
        ],
    },
    rates(cpu=time.process_time), "rows/s", {"rows": 300}, seconds=18.0, rows=4_096,
)  # fmt: skip
def files(run: Run, columns: int) -> Sides:
    """Files of rows to records and to columns, against Python's csv with orjson, and pyarrow, which hashes no words."""
    job, path = file_of(columns, run.rows, run.folder)
    return {
        "records": lambda: to_records(job, path), "csv + float + orjson": lambda: by_python(path),
        "columns": lambda: to_columns(job, path), "pyarrow, one thread": lambda: by_pyarrow(path),
    }  # fmt: skip


def job(form: str) -> Job:
    return Job.parse(job_text(NOWHERE, format=form), sets=[f"kafka.{name}={text}" for name, text in QUEUE.items()])


def cpu_rate(call: Callable[[], int], run: Run) -> float:
    """Rows a second of the thread's processor time; once is not counted."""
    call()
    done, begun, seconds = 0, time.thread_time(), run.seconds / run.turns / 8
    while (spent := time.thread_time() - begun) < seconds or not done:
        done += call()
    return done / spent


def written(form: str, write: Callable[[RecordWriter], object], run: Run) -> float:
    writer = RecordWriter(job(form))
    writer._last_words.detach()  # nothing is to be delivered
    try:
        return cpu_rate(lambda: (write(writer), PACK)[1], run)
    finally:
        writer._outbox._producer.purge()


def produced(write: Callable[[Producer], object], run: Run) -> float:
    producer = Producer({**QUEUE, "bootstrap.servers": NOWHERE, "linger.ms": "5", "enable.idempotence": True})
    try:
        return cpu_rate(lambda: (write(producer), PACK)[1], run)
    finally:
        producer.purge()


def encoded(dtype: str, run: Run) -> float:
    """Columns → packed records of 256 rows, not handed to librdkafka."""
    cells = table(65_536).astype(dtype)
    columns = {name: np.ascontiguousarray(cells[:, at]) for at, name in enumerate(NAMES)}
    records = Records(job("packed").schema, "packed", "bench.records", PACK, 900_000)
    return cpu_rate(lambda: sum(record.rows for block in records.blocks(columns, None, False) for record in block), run)


@bench(
    "writer",
    [
        Line("256 dicts, packed", "packed", "orjson.dumps + produce of each", 2),
        Line("256 dicts, packed", "packed", "orjson.dumps + produce of the list", 2),
        Line("one dict, msgpack", "msgpack", "orjson.dumps + produce of each", 1),
        Line("one dict, json", "json", "orjson.dumps + produce of each"),
        Line("float32 arrays encoded to packed / 10 M rows/s", "float32", 10e6, 1),
        Line("float64 arrays encoded to packed / 10 M rows/s", "float64", 10e6, 1),
    ],
    in_turns, "rows/s", seconds=20.0, turns=5,
)  # fmt: skip
def writer(run: Run) -> Sides:
    """RecordWriter against orjson.dumps and produce() of the same rows, without a broker, by the thread's processor
    time."""
    rows: list[dict[str, Any]] = [dict(zip(NAMES, row, strict=True)) for row in table(PACK).round(4).tolist()]
    topic = "bench.records"
    return {
        "packed": lambda: written("packed", lambda writer: writer.write(rows), run),
        "msgpack": lambda: written("msgpack", lambda writer: [writer.write(row) for row in rows], run),
        "json": lambda: written("json", lambda writer: [writer.write(row) for row in rows], run),
        "orjson.dumps + produce of each": lambda: produced(
            lambda producer: [producer.produce(topic, orjson.dumps(row)) for row in rows], run
        ),
        "orjson.dumps + produce of the list": lambda: produced(
            lambda producer: producer.produce(topic, orjson.dumps(rows)), run
        ),
        "float32": lambda: encoded("f4", run),
        "float64": lambda: encoded("f8", run),
    }
