"""Decoding alone, on one core: each format against what a Python program would do with the same records.

Prints one JSON line per figure. CPU time of the one thread, so that a busy machine tells the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import msgpack
import numpy as np
import orjson
import pyarrow.ipc
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import record_format
from streamtrain.columns.schema import Schema

FIGURES = 12  # lines of a whole run

BATCH_ROWS = 256
PACKED_SLOT_ROWS = 1024
SCHEMA = Schema.from_columns({"f{01..28}": {}, "late": {"role": "label"}}, "binary_cross_entropy")
NAMES = [name for name, _ in SCHEMA.columns]


def rows(count: int, digits: int) -> list[dict[str, float]]:
    """28 numbers between -10 and 10 and a label."""
    chance = np.random.default_rng(1)
    values = chance.uniform(-10, 10, (count, 28)).round(digits).tolist()
    return [dict(zip(NAMES, [*row, i % 2], strict=True)) for i, row in enumerate(values)]


def rows_per_second(call: Callable[[], int], seconds: float) -> float:
    """The best of five windows: the machine is shared."""
    call()
    best = 0.0
    for _ in range(5):
        done, started = 0, time.thread_time()
        while (spent := time.thread_time() - started) < seconds / 5:
            done += call()
        best = max(best, done / spent)
    return best


def ours(
    format_name: str, records: list[bytes], rows_in_record: int = 1, slot_rows: int = BATCH_ROWS
) -> Callable[[], int]:
    """Decodes all records into one slot, again and again, as ingest does; one call from Python a slot."""
    filler = _native.BatchFiller(format_name, RowSlot(SCHEMA, slot_rows).plan)
    per_slot = slot_rows // rows_in_record
    batches = [records[i : i + per_slot] for i in range(0, len(records), per_slot)]

    def call() -> int:
        for batch in batches:
            assert filler.count(batch).trained == slot_rows
        return len(records) * rows_in_record

    return call


def python(records: list[bytes], loads: Callable[[bytes], Any], is_map: bool) -> Callable[[], int]:
    """Each record parsed into Python objects and put into its row of a NumPy batch."""
    pick = itemgetter(*NAMES)
    batch = np.zeros((BATCH_ROWS, len(NAMES)), np.float32)

    def call() -> int:
        for i, record in enumerate(records):
            batch[i % BATCH_ROWS] = pick(loads(record)) if is_map else loads(record)
        return len(records)

    return call


def python_batched(records: list[bytes], loads: Callable[[bytes], Any], is_map: bool) -> Callable[[], int]:
    """The same with one np.array call for 256 records: as fast as plain Python gets."""
    pick = itemgetter(*NAMES)

    def call() -> int:
        for i in range(0, len(records), BATCH_ROWS):
            chosen = records[i : i + BATCH_ROWS]
            np.array([pick(loads(each)) for each in chosen] if is_map else [loads(each) for each in chosen], np.float32)
        return len(records)

    return call


def copied(records: list[bytes], rows_in_record: int) -> Callable[[], int]:
    """memcpy of the same bytes, record by record, to one place."""
    to = memoryview(bytearray(max(len(each) for each in records)))
    pairs = [(to[: len(each)], each) for each in records]

    def call() -> int:
        for target, source in pairs:
            target[:] = source
        return len(records) * rows_in_record

    return call


def figure(bench: str, mine: float, rival: float, bar: float | None = None) -> dict[str, Any]:
    ratio = round(mine / rival, 2)
    return {"bench": bench, "ours": round(mine), "rival": round(rival), "ratio": ratio, "bar": bar, "unit": "rows/s"}


def json_figures(seconds: float) -> Iterator[dict[str, Any]]:
    given = rows(4 * BATCH_ROWS, 4)
    text = [json.dumps(row).encode() for row in given]
    bytes_each = sum(len(each) for each in text) / len(text)
    mine = rows_per_second(ours("json", text), seconds)
    rival = rows_per_second(python(text, orjson.loads, is_map=True), seconds)
    yield figure(f"json, 29 numbers, {bytes_each:.0f} bytes / orjson.loads + NumPy", mine, rival, 12)
    rival = rows_per_second(python_batched(text, orjson.loads, is_map=True), seconds)
    yield figure("the same / orjson.loads + one np.array per 256 rows", mine, rival)
    chance = np.random.default_rng(2)
    mixed = [json.dumps({name: row[name] for name in chance.permutation(NAMES)}).encode() for row in given]
    long = [json.dumps(row).encode() for row in rows(4 * BATCH_ROWS, 16)]
    for what, records in (("keys in any order", mixed), ("17 digits", long)):
        mine = rows_per_second(ours("json", records), seconds)
        rival = rows_per_second(python(records, orjson.loads, is_map=True), seconds)
        yield figure(f"json, {what} / orjson.loads + NumPy", mine, rival)


def msgpack_figures(seconds: float) -> Iterator[dict[str, Any]]:
    given = rows(4 * BATCH_ROWS, 4)
    for what, values, is_map in (("map", given, True), ("array", [list(row.values()) for row in given], False)):
        records = [msgpack.packb(row, use_single_float=True) for row in values]
        mine = rows_per_second(ours("msgpack", records), seconds)
        rival = rows_per_second(python(records, msgpack.unpackb, is_map), seconds)
        yield figure(f"msgpack, {what} of 29 float32 / msgpack.unpackb + NumPy", mine, rival)


def packed_figures(seconds: float) -> Iterator[dict[str, Any]]:
    chance = np.random.default_rng(3)
    records = []
    for _ in range(512):
        columns = {name: chance.normal(size=BATCH_ROWS).astype(np.float32) for name in NAMES}
        columns["late"] = chance.integers(0, 2, BATCH_ROWS).astype(np.float32)
        records.append(record_format("packed").encode(SCHEMA, columns))
    # 15 MB: what ingest lets librdkafka hold ready. 2 MB lie in the processor's own cache, to memcpy's advantage.
    for count, what in ((512, "15 MB of records"), (64, "2 MB of records")):
        mine = rows_per_second(ours("packed", records[:count], BATCH_ROWS, PACKED_SLOT_ROWS), seconds)
        if count == 512:
            yield figure("packed, 256 rows a record / 8 M rows/s", mine, 8e6, 1)
        rival = rows_per_second(copied(records[:count], BATCH_ROWS), seconds)
        yield figure(f"packed, 256 rows a record, {what} / memcpy of the same bytes", mine, rival, 0.5)


def arrow_figures(seconds: float) -> Iterator[dict[str, Any]]:
    chance = np.random.default_rng(3)
    records = []
    for _ in range(512):
        columns = {name: chance.normal(size=BATCH_ROWS).astype(np.float32) for name in NAMES}
        columns["late"] = chance.integers(0, 2, BATCH_ROWS).astype(np.float32)
        records.append(record_format("arrow").encode(SCHEMA, columns))
    mine = rows_per_second(ours("arrow", records, BATCH_ROWS, PACKED_SLOT_ROWS), seconds)
    for rival, what, bar in (
        (copied(records, BATCH_ROWS), "memcpy of the same bytes", 0.5),
        (read_by_pyarrow(records), "pyarrow's reader + one np.array a record", None),
    ):
        yield figure(f"arrow, 256 rows a record, 15 MB / {what}", mine, rows_per_second(rival, seconds), bar)


def read_by_pyarrow(records: list[bytes]) -> Callable[[], int]:
    """Each record's columns put side by side."""

    def call() -> int:
        for record in records:
            batch = pyarrow.ipc.open_stream(record).read_next_batch()
            np.stack([column.to_numpy() for column in batch.columns], axis=1)
        return len(records) * BATCH_ROWS

    return call


def filler_figures(seconds: float) -> Iterator[dict[str, Any]]:
    given = rows(BATCH_ROWS, 4)
    filler = RowSlot(SCHEMA, BATCH_ROWS)
    pick = itemgetter(*NAMES)
    one = np.zeros((1, len(NAMES)), np.float32)

    def ours_by_row() -> int:
        for row in given:
            filler.fill_row(row)
        return len(given)

    def numpy_by_row() -> int:
        for row in given:
            one[0] = pick(row)
        return len(given)

    yield figure(
        "one dict into a slot / NumPy row of it",
        rows_per_second(ours_by_row, seconds),
        rows_per_second(numpy_by_row, seconds),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=18.0, help="in all")
    seconds = parser.parse_args().seconds / FIGURES
    for figures in (json_figures, msgpack_figures, packed_figures, arrow_figures, filler_figures):
        for each in figures(seconds):
            print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
