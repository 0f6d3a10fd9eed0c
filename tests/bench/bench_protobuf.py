"""Protobuf records, one row each, on one core: ours against Google's package (upb) and NumPy.

Prints one JSON line per figure. CPU time of the one thread, so that a busy machine tells the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from bench_avro import BUCKETS, COUNTS, CRITEO, FLOATS, NUMBERS, TEXTS, criteo, figure, floats
from bench_decode import BATCH_ROWS, rows_per_second
from proto_schemas import File
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats.protobuf_schema import canonical, canonical_bytes
from streamtrain.columns.schema import Schema

FIGURES = 2  # lines of a whole run
SMOKE = ["--seconds", "1"]


def ours(columns: Schema, file: File, records: list[bytes]) -> Callable[[], int]:
    """Decodes all records into one slot, again and again, as ingest does; one call from Python a slot."""
    format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes()))}
    filler = _native.BatchFiller(format, RowSlot(columns, BATCH_ROWS).plan)
    batches = [records[i : i + BATCH_ROWS] for i in range(0, len(records), BATCH_ROWS)]

    def call() -> int:
        for batch in batches:
            assert filler.count(batch).trained == BATCH_ROWS
        return len(records)

    return call


def python_floats(made_class: Any, records: list[bytes]) -> Callable[[], int]:
    """256 rows become an array in one call."""
    parse, fields = made_class.FromString, attrgetter(*NUMBERS, "late")

    def call() -> int:
        for i in range(0, len(records), BATCH_ROWS):
            np.array([fields(parse(record)) for record in records[i : i + BATCH_ROWS]], np.float32)
        return len(records)

    return call


def python_criteo(made_class: Any, records: list[bytes]) -> Callable[[], int]:
    """The same; a text's bucket by Python's own hash, which is the fastest it has."""
    parse, numbers, texts = made_class.FromString, attrgetter("late", *COUNTS), attrgetter(*TEXTS)

    def call() -> int:
        for i in range(0, len(records), BATCH_ROWS):
            rows = [parse(record) for record in records[i : i + BATCH_ROWS]]
            np.array([numbers(row) for row in rows], np.float32)
            np.array([[hash(text) % BUCKETS for text in texts(row)] for row in rows], np.int32)
        return len(records)

    return call


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    plain = [(name, i, "float") for i, name in enumerate(NUMBERS, 1)]
    counts = [(name, i, "int64", "optional") for i, name in enumerate(COUNTS, 2)]
    texts = [(name, i, "string", "optional") for i, name in enumerate(TEXTS, 15)]
    cases = [
        ("28 float32", FLOATS, [*plain, ("late", 29, "int32")], floats()[1], python_floats, 30),
        ("13 counts and 26 texts, optional", CRITEO, [("late", 1, "int32"), *counts, *texts], criteo()[1],
         python_criteo, 10),
    ]  # fmt: skip
    for what, columns, fields, rows, rival, bar in cases:
        file = File(f"{what}.proto")
        file.add("Row", *fields)
        made_class = file.message("Row")
        records = [made_class(**row).SerializeToString() for row in rows]
        size = sum(map(len, records)) / len(records)
        mine = rows_per_second(ours(columns, file, records), seconds / 4)
        theirs = rows_per_second(rival(made_class, records), seconds / 4)
        yield figure(f"protobuf, {what}, {size:.0f} bytes / upb + NumPy", mine, theirs, bar, size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
