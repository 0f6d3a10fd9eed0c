"""CSV decoded into slots by one thread, against pyarrow's reader on one thread: the same bytes, the same columns.

Prints one JSON line per figure, with GB/s and ns a row. Both by the process's CPU time, which a busy machine does not
falsify. The rival reads each record of many lines by itself; of records of one line it is given all lines at once,
for it was not made for them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
import pyarrow
import pyarrow.csv
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.schema import Schema

FIGURES = 4  # lines of a whole run
SMOKE = ["--seconds", "1"]
BAR = 1.0
LINES, RECORDS, SLOT_ROWS = 1_000, 16, 1_000
WORDS = 26
COLUMNS: dict[str, dict[str, Any]] = {
    "28 numbers": {**{f"f{i}": {} for i in range(28)}, "late": {"role": "label"}},
    "13 numbers, 26 words": {
        **{f"i{i}": {} for i in range(13)},
        **{f"c{i}": {"kind": "category", "buckets": 1 << 18} for i in range(WORDS)},
        "late": {"role": "label"},
    },
}


def lines_of(columns: dict[str, Any], chance: np.random.Generator) -> list[bytes]:
    """Numbers of five decimal places; words of eight hexadecimal digits, as Criteo's."""
    cells = []
    for column in columns.values():
        if column.get("kind") == "category":
            cells.append([f"{word:08x}" for word in chance.integers(0, 1 << 31, LINES)])
        elif column.get("role") == "label":
            cells.append([str(label) for label in chance.integers(0, 2, LINES)])
        else:
            cells.append([f"{value:.5f}" for value in chance.normal(size=LINES)])
    return [",".join(row).encode() + b"\n" for row in zip(*cells, strict=True)]


def ours(schema: Schema, records: list[bytes], rows: int) -> Callable[[], int]:
    filler = _native.BatchFiller("csv", RowSlot(schema, SLOT_ROWS).plan)
    per_call = max(1, SLOT_ROWS * len(records) // rows)
    batches = [records[i : i + per_call] for i in range(0, len(records), per_call)]

    def call() -> int:
        assert sum(filler.count(batch).trained for batch in batches) == rows
        return rows

    return call


def arrow(columns: dict[str, Any], records: list[bytes], rows: int) -> Callable[[], int]:
    read = pyarrow.csv.ReadOptions(use_threads=False, column_names=list(columns), block_size=1 << 24)
    types = {
        name: pyarrow.string() if column.get("kind") == "category" else pyarrow.float32()
        for name, column in columns.items()
    }
    convert = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)

    def call() -> int:
        tables = (pyarrow.csv.read_csv(pyarrow.BufferReader(each), read, None, convert) for each in records)
        assert sum(table.num_rows for table in tables) == rows
        return rows

    return call


def rows_per_second(call: Callable[[], int], seconds: float) -> float:
    """The best of five windows."""
    call()
    best = 0.0
    for _ in range(5):
        done, started = 0, time.process_time()
        while (spent := time.process_time() - started) < seconds / 5:
            done += call()
        best = max(best, done / spent)
    return best


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    for name, columns in COLUMNS.items():
        schema = Schema.from_columns(columns, "binary_cross_entropy")
        chance = np.random.default_rng(3)
        packs = [lines_of(columns, chance) for _ in range(RECORDS)]
        many, one = [b"".join(lines) for lines in packs], [line for lines in packs for line in lines]
        rows = LINES * RECORDS
        row_bytes = sum(map(len, many)) / rows
        rival = rows_per_second(arrow(columns, many, rows), seconds / 8)
        rival_all = rows_per_second(arrow(columns, [b"".join(many)], rows), seconds / 8)
        for told, records, against in ((f"{LINES:,} lines a record", many, rival), ("a line a record", one, rival_all)):
            mine = rows_per_second(ours(schema, records, rows), seconds / 8)
            yield {
                "bench": f"csv, {name}, {told} / pyarrow", "ours": round(mine), "rival": round(against),
                "ratio": round(mine / against, 2), "bar": BAR, "ns_a_row": round(1e9 / mine, 1),
                "gb_per_second": round(mine * row_bytes / 1e9, 3), "unit": "rows/s",
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
