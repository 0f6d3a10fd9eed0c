"""What columns cost that are more than plain numbers: packed records with one of them, against the same without; rows
nested as their columns' paths say, and rows on lines, against flat ones.

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

import msgpack
import numpy as np
from bench_decode import rows_per_second
from packed_wire import Cells, packed
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import record_format
from streamtrain.columns.schema import Schema

FIGURES = 13  # lines of a whole run
SMOKE = ["--seconds", "1"]
RECORDS, RECORD_ROWS, SLOT_ROWS = 64, 256, 1024
WORDS = 16
CRITEO = 30e6  # rows/s of one core
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


def criteo(bits: int) -> Columns:
    """13 numbers and 26 categories."""
    return {"i{01..13}": {}, "c{01..26}": {"kind": "category", "buckets": 100_000, "hash_bits": bits}, "late": LATE}


def with_hashes(chance: np.random.Generator) -> Columns:
    columns: Columns = {f"i{i:02}": chance.normal(size=RECORD_ROWS).astype(np.float32) for i in range(1, 14)}
    columns |= {f"c{i:02}": [f"{id:08x}" for id in chance.integers(0, 10**6, RECORD_ROWS)] for i in range(1, 27)}
    return {**columns, "late": chance.integers(0, 2, RECORD_ROWS).astype(np.float32)}


TAGS: Columns = {"f{01..28}": {}, "tags": {"kind": "category", "list": True, "buckets": 65536}}


def with_tags(chance: np.random.Generator) -> Columns:
    """0 to 8 of 1,000."""
    tags = [[f"tag {i}" for i in chance.integers(0, 1000, chance.integers(0, 9))] for _ in range(RECORD_ROWS)]
    return {**numbers(chance), "tags": tags}


def list_figures(seconds: float) -> Iterator[dict[str, Any]]:
    made = with_tags(np.random.default_rng(3))
    plain = {name: cells if name == "tags" else cells.astype(float).round(4).tolist() for name, cells in made.items()}
    rows = [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    calls = decoder({**TAGS, "late": LATE}, "binary_cross_entropy", with_tags), rows_decoder("json", TAGS, rows)
    mine, rival = (rows_per_second(call, seconds / 2) for call in calls)
    yield figure("packed, 28 float32 and a list of 0 to 8 categories / the same in JSON", mine, rival, 10)


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
    calls |= {f"hash{bits}": decoder(criteo(bits), binary, with_hashes) for bits in (32, 64)}
    rates = {name: rows_per_second(call, seconds / len(calls)) for name, call in calls.items()}
    for name, *_ in cases:
        yield figure(f"packed, 28 float32 with {name} / without", rates[name], rates["plain"], 0.4)
    for bits, bar in ((32, 1.0), (64, None)):
        yield figure(f"13 float32 and 26 hash{bits} / 30 M rows/s", rates[f"hash{bits}"], CRITEO, bar)
    yield figure("a label of 20,000 names, one text a row / of 10", rates["text 20000"], rates["text 10"], 0.7)


def rows_decoder(form: str, columns: Columns, rows: list[Any], lines: bool = False) -> Callable[[], int]:
    """The same of rows, each a record; with `lines` all of a slot in one, a line each."""
    schema = Schema.from_columns({**columns, "late": LATE}, "binary_cross_entropy")
    encode = msgpack_bytes if form == "msgpack" else json_bytes
    filler = _native.BatchFiller(form, RowSlot(schema, len(rows)).plan)
    records = [encode(row) for row in rows]
    if lines:
        records = [b"\n".join(records)]

    def call() -> int:
        assert filler.count(records).trained == len(rows)
        return len(rows)

    return call


def json_bytes(row: Any) -> bytes:
    return json.dumps(row).encode()


def msgpack_bytes(row: Any) -> bytes:
    return bytes(msgpack.packb(row, use_single_float=True))


def nested_figures(seconds: float) -> Iterator[dict[str, Any]]:
    """28 numbers and a label: flat, in four objects, in an array."""
    values = np.random.default_rng(1).uniform(-10, 10, (1024, 28)).round(4).tolist()
    flat = [dict(zip(NUMBERS, row, strict=True)) | {"late": i % 2} for i, row in enumerate(values)]
    objects = [
        {f"g{k + 1}": {f"f{j + 1}": row[7 * k + j] for j in range(7)} for k in range(4)} | {"late": i % 2}
        for i, row in enumerate(values)
    ]
    arrays = [{"v": row, "late": i % 2} for i, row in enumerate(values)]
    calls: dict[str, Callable[[], int]] = {}
    for form in ("json", "msgpack"):
        calls[form] = rows_decoder(form, {"f{01..28}": {}}, flat)
        calls[f"{form} objects"] = rows_decoder(form, {"g{1..4}f{1..7}": {"path": "g{1..4}.f{1..7}"}}, objects)
        calls[f"{form} array"] = rows_decoder(form, {"f{0..27}": {"path": "v[{0..27}]"}}, arrays)
    calls["lines"] = rows_decoder("json", {"f{01..28}": {}}, flat, lines=True)
    rates = {name: rows_per_second(call, seconds / len(calls)) for name, call in calls.items()}
    for form in ("json", "msgpack"):
        yield figure(f"{form}, 28 numbers in 4 objects / flat", rates[f"{form} objects"], rates[form], 0.6)
        yield figure(f"{form}, 28 numbers in an array / flat", rates[f"{form} array"], rates[form], 0.6)
    yield figure("json, 1024 rows on lines / a record each", rates["lines"], rates["json"], 0.9)


def figure(bench: str, mine: float, rival: float, bar: float | None) -> dict[str, Any]:
    ratio = round(mine / rival, 2)
    return {
        "bench": bench, "ours": round(mine), "rival": round(rival), "ratio": ratio, "bar": bar,
        "ns_a_row": round(1e9 / mine, 1), "unit": "rows/s",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=24.0, help="in all")
    seconds = parser.parse_args().seconds / 3
    for each in (*figures(seconds), *nested_figures(seconds), *list_figures(seconds)):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
