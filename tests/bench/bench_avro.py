"""Avro records, one row each, on one core: ours against fastavro and NumPy, and against a rate.

Prints one JSON line per figure. CPU time of the one thread, so that a busy machine tells the same.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import fastavro
import numpy as np
from bench_decode import BATCH_ROWS, rows_per_second
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.columns.schema import Schema

FIGURES = 3  # lines of a whole run
SMOKE = ["--seconds", "1"]
RECORDS = 4 * BATCH_ROWS
BUCKETS = 1_000_000
NUMBERS = [f"f{i:02}" for i in range(1, 29)]
COUNTS, TEXTS = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
FLOATS = Schema.from_columns({"f{01..28}": {}, "late": {"role": "label"}}, "binary_cross_entropy")
CRITEO = Schema.from_columns(
    {
        "late": {"role": "label"},
        "I{1..13}": {"missing": 0},
        "C{1..26}": {"kind": "category", "buckets": BUCKETS, "missing": ""},
    },
    "binary_cross_entropy",
)


def row_schema(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": of} for name, of in fields.items()]}


def floats() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """28 float32 and a label."""
    chance = np.random.default_rng(1)
    values = chance.uniform(-10, 10, (RECORDS, 28)).astype(np.float32).tolist()
    rows = [{**dict(zip(NUMBERS, row, strict=True)), "late": i % 2} for i, row in enumerate(values)]
    return row_schema({**dict.fromkeys(NUMBERS, "float"), "late": "int"}), rows


def criteo() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A label, 13 counts and 26 texts of 8 hexadecimal digits; a twentieth of the cells is missing."""
    chance = np.random.default_rng(2)
    nullable = {**{name: ["null", "long"] for name in COUNTS}, **{name: ["null", "string"] for name in TEXTS}}
    fields = {"late": "int", **nullable}
    rows: list[dict[str, Any]] = []
    for i in range(RECORDS):
        counts = {name: int(chance.geometric(0.02)) for name in COUNTS}
        texts = {name: f"{chance.integers(0, 2**32):08x}" for name in TEXTS}
        row = {**counts, **texts}
        rows.append({"late": i % 2, **{name: None if chance.random() < 0.05 else row[name] for name in row}})
    return row_schema(fields), rows


def written(schema: Any, rows: list[dict[str, Any]]) -> list[bytes]:
    parsed, records = fastavro.parse_schema(dict(schema)), []
    for row in rows:
        to = io.BytesIO()
        fastavro.schemaless_writer(to, parsed, row)
        records.append(to.getvalue())
    return records


def ours(columns: Schema, schema: Any, records: list[bytes]) -> Callable[[], int]:
    """Decodes all records into one slot, again and again, as ingest does; one call from Python a slot."""
    format = {"name": "avro", "schema": canonical(json.dumps(schema))}
    filler = _native.BatchFiller(format, RowSlot(columns, BATCH_ROWS).plan)
    batches = [records[i : i + BATCH_ROWS] for i in range(0, len(records), BATCH_ROWS)]

    def call() -> int:
        for batch in batches:
            assert filler.count(batch).trained == BATCH_ROWS
        return len(records)

    return call


def read_all(schema: Any, records: list[bytes]) -> Iterator[Any]:
    parsed = fastavro.parse_schema(dict(schema))
    return (fastavro.schemaless_reader(io.BytesIO(record), parsed, None) for record in records)


def python_floats(schema: Any, records: list[bytes]) -> Callable[[], int]:
    """256 rows become an array in one call."""

    def call() -> int:
        for i in range(0, len(records), BATCH_ROWS):
            np.array([list(row.values()) for row in read_all(schema, records[i : i + BATCH_ROWS])], np.float32)
        return len(records)

    return call


def python_criteo(schema: Any, records: list[bytes]) -> Callable[[], int]:
    """The same; a text's bucket by Python's own hash, which is the fastest it has."""

    def call() -> int:
        for i in range(0, len(records), BATCH_ROWS):
            rows = [list(row.values()) for row in read_all(schema, records[i : i + BATCH_ROWS])]
            numbers = np.array([row[:14] for row in rows], np.float32)
            numbers[np.isnan(numbers)] = 0
            np.array([[hash(text) % BUCKETS for text in row[14:]] for row in rows], np.int32)
        return len(records)

    return call


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    cases = [
        ("28 float32", FLOATS, *floats(), python_floats, 60, 0.0),
        ("13 counts and 26 texts, nullable", CRITEO, *criteo(), python_criteo, 50, 3e6),
    ]
    for what, columns, schema, rows, rival, bar, rate in cases:
        records = written(schema, rows)
        size = sum(map(len, records)) / len(records)
        mine = rows_per_second(ours(columns, schema, records), seconds / 4)
        theirs = rows_per_second(rival(schema, records), seconds / 4)
        yield figure(f"avro, {what}, {size:.0f} bytes / fastavro + NumPy", mine, theirs, bar, size)
        if rate:
            yield figure(f"the same / {rate / 1e6:.0f} M rows/s", mine, rate, 1, size)


def figure(bench: str, mine: float, rival: float, bar: float, size: float) -> dict[str, Any]:
    return {
        "bench": bench, "ours": round(mine), "rival": round(rival), "ratio": round(mine / rival, 2), "bar": bar,
        "ns_a_row": round(1e9 / mine, 1), "gb_per_s": round(mine * size / 1e9, 2), "unit": "rows/s",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
