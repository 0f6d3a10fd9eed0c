"""Files of rows: to records, as `produce` and `fit` make them, and to the model's columns, as `vectorize` does.

Prints one JSON line per figure, by the process's CPU time. The rivals: Python's csv module, numbers by float() and
orjson, a record of a list of 256 rows; pyarrow's reader of CSV on one thread, to NumPy, which hashes no words.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow
import pyarrow.csv

from streamtrain import Job
from streamtrain.columns.records import Records
from streamtrain.files.blocks import Size
from streamtrain.files.reading import read_blocks
from streamtrain.files.records import FileRecords
from streamtrain.files.wanted import Wanted

FIGURES = 3  # lines of a whole run
SMOKE = ["--seconds", "0.2", "--rows", "300"]
PACK = 256


def table(columns: int, rows: int, folder: Path) -> tuple[Job, str]:
    """A job of so many numbers, and a file of its rows."""
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
    return sum(record.rows for block in blocks for made in records.blocks(block, None, False) for record in made)


def by_python(job: Job, path: str) -> int:
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


def by_pyarrow(job: Job, path: str) -> int:
    read = pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(use_threads=False))
    return len(np.column_stack([column.to_numpy().astype(np.float32) for column in read.columns]))


def cpu_s(call: Callable[[Job, str], int], job: Job, path: str, seconds: float) -> float:
    """CPU time of a row."""
    call(job, path)
    rows, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        rows += call(job, path)
    return (time.process_time() - begin) / rows


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seconds", type=float, default=3.0)
    arguments.add_argument("--rows", type=int, default=4_096)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for columns, what, ours, rival, bar in (
            (1_000, "1,000 columns of CSV to packed records", to_records, by_python, 3),
            (28, "28 columns of CSV to packed records", to_records, by_python, 3),
            (28, "28 columns of CSV to columns of the model", to_columns, by_pyarrow, None),
        ):
            job, path = table(columns, given.rows, Path(folder))
            one, other = (cpu_s(call, job, path, given.seconds) for call in (ours, rival))
            figure = {"bench": f"files, {what}", "ours": round(1 / one), "rival": round(1 / other),
                      "ratio": round(other / one, 2), "cpu_ns_a_row": round(one * 1e9), "unit": "rows/s"}  # fmt: skip
            print(json.dumps(figure if bar is None else {**figure, "bar": bar}), flush=True)


if __name__ == "__main__":
    main()
