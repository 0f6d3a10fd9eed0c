"""Decoding alone, on one core: each format against what a Python program would do with the same records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import msgpack
import numpy as np
import orjson
import pyarrow.ipc
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import record_format
from streamtrain.columns.schema import Schema
from tests.bench.harness import Line, Run, Sides, bench, rates

BATCH_ROWS = 256
PACKED_SLOT_ROWS = 1024
SCHEMA = Schema.from_columns({"f{01..28}": {}, "late": {"role": "label"}}, "binary_cross_entropy")
NAMES = [name for name, _ in SCHEMA.columns]
LOOP, COPY = "orjson.loads + NumPy", "memcpy of the same bytes"


def decoder(
    format: Any, schema: Schema, records: Sequence[bytes], rows: int, slot_rows: int = BATCH_ROWS, work: int = 0
) -> Callable[[], int]:
    """Decodes all records, of so many rows, into one slot, again and again, as ingest does; one call from Python a
    slot. Rows that a condition leaves out count; `work` is what a call counts as, if not the rows."""
    filler = _native.BatchFiller(format, RowSlot(schema, slot_rows).plan)
    per_slot = max(1, slot_rows * len(records) // rows)
    batches = [records[at : at + per_slot] for at in range(0, len(records), per_slot)]

    def call() -> int:
        done = 0
        for batch in batches:
            tally = filler.count(batch)
            assert not tally.dead
            done += tally.trained + tally.filtered
        assert done == rows
        return work or rows

    return call


def rows(count: int, digits: int) -> list[dict[str, float]]:
    """28 numbers between -10 and 10 and a label."""
    chance = np.random.default_rng(1)
    values = chance.uniform(-10, 10, (count, 28)).round(digits).tolist()
    return [dict(zip(NAMES, [*row, i % 2], strict=True)) for i, row in enumerate(values)]


def numbers(chance: np.random.Generator, names: Sequence[str] = NAMES[:-1]) -> dict[str, Any]:
    """Columns of 256 rows."""
    columns = {name: chance.normal(size=BATCH_ROWS).astype(np.float32) for name in names}
    return {**columns, "late": chance.integers(0, 2, BATCH_ROWS).astype(np.float32)}


def python(records: list[bytes], loads: Callable[[bytes], Any], is_map: bool = True) -> Callable[[], int]:
    """Each record parsed into Python objects and put into its row of a NumPy batch."""
    pick = itemgetter(*NAMES)
    batch = np.zeros((BATCH_ROWS, len(NAMES)), np.float32)

    def call() -> int:
        for i, record in enumerate(records):
            batch[i % BATCH_ROWS] = pick(loads(record)) if is_map else loads(record)
        return len(records)

    return call


def python_batched(records: list[bytes]) -> Callable[[], int]:
    """The same with one np.array call for 256 records: as fast as plain Python gets."""
    pick = itemgetter(*NAMES)

    def call() -> int:
        for i in range(0, len(records), BATCH_ROWS):
            np.array([pick(orjson.loads(each)) for each in records[i : i + BATCH_ROWS]], np.float32)
        return len(records)

    return call


def copied(records: list[bytes]) -> Callable[[], int]:
    """memcpy of the same bytes, record by record, to one place."""
    to = memoryview(bytearray(max(len(each) for each in records)))
    pairs = [(to[: len(each)], each) for each in records]

    def call() -> int:
        for target, source in pairs:
            target[:] = source
        return len(records) * BATCH_ROWS

    return call


def read_by_pyarrow(records: list[bytes]) -> Callable[[], int]:
    """Each record's columns put side by side."""

    def call() -> int:
        for record in records:
            batch = pyarrow.ipc.open_stream(record).read_next_batch()
            np.stack([column.to_numpy() for column in batch.columns], axis=1)
        return len(records) * BATCH_ROWS

    return call


def json_sides() -> Sides:
    given = rows(4 * BATCH_ROWS, 4)
    chance = np.random.default_rng(2)
    texts = {
        "json": [json.dumps(row).encode() for row in given],
        "any order": [json.dumps({name: row[name] for name in chance.permutation(NAMES)}).encode() for row in given],
        "17 digits": [json.dumps(row).encode() for row in rows(4 * BATCH_ROWS, 16)],
    }
    sides: dict[str, Any] = {name: decoder("json", SCHEMA, text, len(text)) for name, text in texts.items()}
    sides |= {f"{LOOP}, {name}": python(text, orjson.loads) for name, text in texts.items()}
    return {**sides, "orjson.loads + one np.array per 256 rows": python_batched(texts["json"])}


def msgpack_sides() -> Sides:
    given = rows(4 * BATCH_ROWS, 4)
    sides: dict[str, Any] = {}
    for what, values in (("map", given), ("array", [list(row.values()) for row in given])):
        records = [msgpack.packb(row, use_single_float=True) for row in values]
        sides[what] = decoder("msgpack", SCHEMA, records, len(records))
        sides[f"msgpack.unpackb + NumPy, {what}"] = python(records, msgpack.unpackb, what == "map")
    return sides


def block_sides() -> Sides:
    """15 MB are what ingest lets librdkafka keep. 2 MB lie in the processor's own cache, to memcpy's advantage."""
    sides: dict[str, Any] = {}
    for form in ("packed", "arrow"):
        chance = np.random.default_rng(3)
        records = [record_format(form).encode(SCHEMA, numbers(chance)) for _ in range(512)]
        for name, part in ((form, records), (f"{form}, 2 MB", records[:64])):
            sides[name] = decoder(form, SCHEMA, part, BATCH_ROWS * len(part), PACKED_SLOT_ROWS)
            sides[f"{COPY}, {name}"] = copied(part)
    return {**sides, "pyarrow's reader + one np.array a record": read_by_pyarrow(records)}


def row_sides() -> Sides:
    """One dict into a slot."""
    given, filler, pick, one = rows(BATCH_ROWS, 4), RowSlot(SCHEMA, BATCH_ROWS), itemgetter(*NAMES), np.zeros((1, 29))
    one = one.astype(np.float32)

    def by_row() -> int:
        for row in given:
            filler.fill_row(row)
        return len(given)

    def numpy_by_row() -> int:
        for row in given:
            one[0] = pick(row)
        return len(given)

    return {"one dict": by_row, "NumPy row of it": numpy_by_row}


@bench(
    "decode",
    {
        (json_sides,): [
            Line("json, 29 numbers, 416 bytes", "json", f"{LOOP}, json", 12),
            Line("json, 29 numbers", "json", "orjson.loads + one np.array per 256 rows"),
            Line("json, keys in any order", "any order", f"{LOOP}, any order"),
            Line("json, 17 digits", "17 digits", f"{LOOP}, 17 digits"),
        ],
        (msgpack_sides,): [
            Line("msgpack, map of 29 float32", "map", "msgpack.unpackb + NumPy, map"),
            Line("msgpack, array of 29 float32", "array", "msgpack.unpackb + NumPy, array"),
        ],
        (block_sides,): [
            Line("packed, 256 rows a record, 15 MB / 8 M rows/s", "packed", 8e6, 1),
            Line("packed, 256 rows a record, 15 MB", "packed", f"{COPY}, packed", 0.5),
            Line("packed, 256 rows a record, 2 MB", "packed, 2 MB", f"{COPY}, packed, 2 MB", 0.5),
            Line("arrow, 256 rows a record, 15 MB", "arrow", f"{COPY}, arrow", 0.5),
            Line("arrow, 256 rows a record", "arrow", "pyarrow's reader + one np.array a record"),
        ],
        (row_sides,): [Line("one dict into a slot", "one dict", "NumPy row of it")],
    },
    rates(), "rows/s", seconds=30.0,
)  # fmt: skip
def decode(run: Run, sides: Callable[[], Sides]) -> Sides:
    """Formats into slots on one core, against Python libraries with NumPy and against memcpy."""
    return sides()
