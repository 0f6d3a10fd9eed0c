"""Decoding alone, on one core: each format against what a Python program would do with the same records.

Prints one JSON line per figure. `--seconds`: how long each side is measured.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import msgpack
import numpy as np
import orjson

from streamtrain import _native
from streamtrain.vectorize.formats import record_format
from streamtrain.vectorize.plan import SlotFiller
from streamtrain.vectorize.schema import Schema

BATCH_ROWS = 256
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


def ours(format_name: str, records: list[bytes], rows_in_record: int = 1) -> Callable[[], int]:
    """Decodes all records into one slot of 256 rows, again and again, as ingest does."""
    filler = SlotFiller(SCHEMA, BATCH_ROWS)
    decoder = _native.Decoder(format_name, filler.plan)
    per_slot = BATCH_ROWS // rows_in_record
    batches = [records[i : i + per_slot] for i in range(0, len(records), per_slot)]

    def call() -> int:
        for batch in batches:
            count, used, *_ = decoder.decode_many(batch, filler.slot, 0, BATCH_ROWS)
            assert used == BATCH_ROWS and count == len(batch)
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
    """memcpy of the same bytes, record by record."""
    to = np.zeros(max(len(each) for each in records), np.uint8)
    pairs = [(to[: len(each)], np.frombuffer(each, np.uint8)) for each in records]

    def call() -> int:
        for target, source in pairs:
            np.copyto(target, source)
        return len(records) * rows_in_record

    return call


def figure(bench: str, mine: float, rival: float, bar: float | None, unit: str = "rows/s") -> dict[str, Any]:
    return {"bench": bench, "ours": round(mine), "rival": round(rival), "ratio": round(mine / rival, 2), "bar": bar, "unit": unit}


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    given = rows(4 * BATCH_ROWS, 5)
    text = [json.dumps(row).encode() for row in given]
    size = round(sum(len(each) for each in text) / len(text))
    mine = rows_per_second(ours("json", text), seconds)
    yield figure(f"json, 29 numbers, {size} bytes / orjson.loads + NumPy", mine, rows_per_second(python(text, orjson.loads, True), seconds), 12)
    yield figure("json / orjson.loads + one np.array per 256", mine, rows_per_second(python_batched(text, orjson.loads, True), seconds), None)
    chance = np.random.default_rng(2)
    mixed = [json.dumps(dict(chance.permutation(list(row.items())).tolist())).encode() for row in given[:BATCH_ROWS]]
    mixed = [json.dumps({k: row[k] for k in chance.permutation(NAMES)}).encode() for row in given]
    yield figure("json in any order / orjson.loads + NumPy", rows_per_second(ours("json", mixed), seconds), rows_per_second(python(mixed, orjson.loads, True), seconds), None)
    long = [json.dumps(row).encode() for row in rows(4 * BATCH_ROWS, 16)]
    yield figure("json, 17 digits / orjson.loads + NumPy", rows_per_second(ours("json", long), seconds), rows_per_second(python(long, orjson.loads, True), seconds), None)
    for name, values, is_map in (("map", given, True), ("array", [list(row.values()) for row in given], False)):
        packed = [msgpack.packb(row, use_single_float=True) for row in values]
        yield figure(
            f"msgpack {name} of 29 float32 / msgpack.unpackb + NumPy",
            rows_per_second(ours("msgpack", packed), seconds),
            rows_per_second(python(packed, msgpack.unpackb, is_map), seconds),
            None,
        )
    many = rows(64 * BATCH_ROWS, 5)
    blocks = [
        record_format("packed").encode(SCHEMA, {n: np.array([row[n] for row in many[i : i + 256]], np.float32) for n in NAMES})
        for i in range(0, len(many), 256)
    ]
    mine = rows_per_second(ours("packed", blocks, 256), seconds)
    yield figure("packed, 256 rows a record / 8 M rows/s", mine, 8e6, 1)
    yield figure("packed, 256 rows a record / memcpy of its bytes", mine, rows_per_second(copied(blocks, 256), seconds), 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
