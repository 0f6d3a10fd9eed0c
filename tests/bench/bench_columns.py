"""What columns cost that are more than plain numbers: packed records with one of them, against the same without.

Prints one JSON line per figure. CPU time of the one thread, so that a busy machine tells the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from bench_decode import rows_per_second
from packed_wire import Cells, packed
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import record_format
from streamtrain.columns.schema import Schema

FIGURES = 5  # lines of a whole run
SMOKE = ["--seconds", "1"]
RECORDS, RECORD_ROWS, SLOT_ROWS = 64, 256, 1024
WORDS = 16
NUMBERS = [f"f{i:02}" for i in range(1, 29)]
LATE: dict[str, Any] = {"role": "label"}
Columns = dict[str, Any]


def decoder(
    columns: Columns, loss: str, make: Callable[[np.random.Generator], Columns], texts: bool = False
) -> Callable[[], int]:
    """Decodes all records into one slot, as ingest does; `texts`: labels are a text a row, and no words."""
    schema = Schema.from_columns(columns, loss)
    chance = np.random.default_rng(3)
    given = [make(chance) for _ in range(RECORDS)]
    records = [with_texts(each) if texts else record_format("packed").encode(schema, each) for each in given]
    filler = _native.BatchFiller("packed", RowSlot(schema, SLOT_ROWS).plan)
    per_slot = SLOT_ROWS // RECORD_ROWS
    batches = [records[i : i + per_slot] for i in range(0, RECORDS, per_slot)]

    def call() -> int:
        for batch in batches:
            assert filler.count(batch).trained == SLOT_ROWS
        return RECORDS * RECORD_ROWS

    return call


def numbers(chance: np.random.Generator) -> Columns:
    columns: Columns = {name: chance.normal(size=RECORD_ROWS).astype(np.float32) for name in NUMBERS}
    return {**columns, "late": chance.integers(0, 2, RECORD_ROWS).astype(np.float32)}


def with_nulls(chance: np.random.Generator) -> Columns:
    return {
        name: np.ma.MaskedArray(cells, chance.random(RECORD_ROWS) < 0.05) if name in NUMBERS else cells
        for name, cells in numbers(chance).items()
    }


def with_time(chance: np.random.Generator) -> Columns:
    return {**numbers(chance), "at": 1_790_000_000_000 + chance.integers(0, 1_000_000, RECORD_ROWS)}


def with_words(chance: np.random.Generator) -> Columns:
    words = np.array([f"word {i}" for i in range(WORDS)])
    return {**numbers(chance), **{f"w{i}": words[chance.integers(0, WORDS, RECORD_ROWS)] for i in range(4)}}


def with_names(count: int) -> Callable[[np.random.Generator], Columns]:
    names = np.array([f"class {i}" for i in range(count)])

    def make(chance: np.random.Generator) -> Columns:
        return {**numbers(chance), "late": names[chance.integers(0, count, RECORD_ROWS)]}

    return make


def with_texts(columns: Columns) -> bytes:
    none = [False] * RECORD_ROWS
    cells = {name: Cells("f4", columns[name].tolist(), none) for name in NUMBERS}
    return packed({**cells, "late": Cells("text", columns["late"].tolist(), none)})


def of_classes(count: int) -> Columns:
    return {"f{01..28}": {}, "late": {**LATE, "classes": [f"class {i}" for i in range(count)]}}


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    binary = "binary_cross_entropy"
    classes = "softmax_cross_entropy"
    plain = {"f{01..28}": {}, "late": LATE}
    words = {**plain, "w{0..3}": {"kind": "category", "buckets": 1024}}
    cases: list[tuple[str, Columns, str, Callable[[np.random.Generator], Columns]]] = [
        ("5 % nulls in every number", {"f{01..28}": {"missing": 0}, "late": LATE}, binary, with_nulls),
        ("an event_time", {**plain, "at": {"role": "event_time"}}, binary, with_time),
        ("4 columns of words", words, binary, with_words),
        ("a label of 10 names", of_classes(10), classes, with_names(10)),
    ]
    calls = {"plain": decoder(plain, binary, numbers)}
    calls |= {name: decoder(columns, loss, make) for name, columns, loss, make in cases}
    calls |= {f"text {n}": decoder(of_classes(n), classes, with_names(n), texts=True) for n in (10, 20_000)}
    rates = {name: rows_per_second(call, seconds / len(calls)) for name, call in calls.items()}
    for name, *_ in cases:
        yield figure(f"packed, 28 float32 with {name} / without", rates[name], rates["plain"], 0.4)
    yield figure("a label of 20,000 names, one text a row / of 10", rates["text 20000"], rates["text 10"], 0.7)


def figure(bench: str, mine: float, rival: float, bar: float) -> dict[str, Any]:
    ratio = round(mine / rival, 2)
    return {
        "bench": bench, "ours": round(mine), "rival": round(rival), "ratio": ratio, "bar": bar,
        "ns_a_row": round(1e9 / mine, 1), "unit": "rows/s",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
