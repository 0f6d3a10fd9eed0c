"""What columns cost that are more than plain numbers: packed records with one of them, against the same without; rows
nested as their columns' paths say, and rows on lines, against flat ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
from packed_wire import Cells, packed

from streamtrain.columns.formats import record_format
from streamtrain.columns.schema import Schema
from tests.bench import decode
from tests.bench.decode import BATCH_ROWS, NAMES, PACKED_SLOT_ROWS, numbers
from tests.bench.harness import Line, Run, Sides, bench, rates

RECORDS, WORDS = 64, 16
CRITEO = 30e6  # rows/s of one core
BINARY = "binary_cross_entropy"
CLASSES = "softmax_cross_entropy"
LATE: dict[str, Any] = {"role": "label"}
PLAIN = {"f{01..28}": {}, "late": LATE}
TAGS = {**PLAIN, "tags": {"kind": "category", "list": True, "buckets": 65536}}
Columns = dict[str, Any]
Make = Callable[[np.random.Generator], Columns]


def decoder(columns: Columns, make: Make, loss: str = BINARY, texts: bool = False) -> Callable[[], int]:
    """Packed records of 256 rows; `texts`: labels are a text a row, and no words."""
    schema, chance = Schema.from_columns(columns, loss), np.random.default_rng(3)
    given = [make(chance) for _ in range(RECORDS)]
    records = [with_texts(each) if texts else record_format("packed").encode(schema, each) for each in given]
    return decode.decoder("packed", schema, records, RECORDS * BATCH_ROWS, PACKED_SLOT_ROWS)


def with_nulls(chance: np.random.Generator) -> Columns:
    return {
        name: np.ma.MaskedArray(cells, chance.random(BATCH_ROWS) < 0.05) if name != "late" else cells
        for name, cells in numbers(chance).items()
    }


def with_time(chance: np.random.Generator) -> Columns:
    return {**numbers(chance), "at": 1_790_000_000_000 + chance.integers(0, 1_000_000, BATCH_ROWS)}


def with_words(chance: np.random.Generator) -> Columns:
    words = np.array([f"word {i}" for i in range(WORDS)])
    return {**numbers(chance), **{f"w{i}": words[chance.integers(0, WORDS, BATCH_ROWS)] for i in range(4)}}


def with_names(count: int) -> Make:
    names = np.array([f"class {i}" for i in range(count)])
    return lambda chance: {**numbers(chance), "late": names[chance.integers(0, count, BATCH_ROWS)]}


def with_texts(columns: Columns) -> bytes:
    none = [False] * BATCH_ROWS
    cells = {name: Cells("f4", columns[name].tolist(), none) for name in NAMES[:-1]}
    return packed({**cells, "late": Cells("text", columns["late"].tolist(), none)})


def of_classes(count: int) -> Columns:
    return {"f{01..28}": {}, "late": {**LATE, "classes": [f"class {i}" for i in range(count)]}}


def criteo(bits: int) -> Columns:
    """13 numbers and 26 categories."""
    return {"i{01..13}": {}, "c{01..26}": {"kind": "category", "buckets": 100_000, "hash_bits": bits}, "late": LATE}


def with_hashes(chance: np.random.Generator) -> Columns:
    columns = numbers(chance, [f"i{i:02}" for i in range(1, 14)])
    ids = {f"c{i:02}": [f"{id:08x}" for id in chance.integers(0, 10**6, BATCH_ROWS)] for i in range(1, 27)}
    return {**columns, **ids}


def with_tags(chance: np.random.Generator) -> Columns:
    """0 to 8 of 1,000."""
    tags = [[f"tag {i}" for i in chance.integers(0, 1000, chance.integers(0, 9))] for _ in range(BATCH_ROWS)]
    return {**numbers(chance), "tags": tags}


def of_rows(form: str, columns: Columns, rows: list[Any], lines: bool = False) -> Callable[[], int]:
    """Rows, each a record; with `lines` all of a slot in one, a line each."""
    schema = Schema.from_columns(columns, BINARY)
    dumps = (lambda row: json.dumps(row).encode()) if form == "json" else pack
    records = [dumps(row) for row in rows]
    return decode.decoder(form, schema, [b"\n".join(records)] if lines else records, len(rows), len(rows))


def pack(row: Any) -> bytes:
    return bytes(msgpack.packb(row, use_single_float=True))


def kinds() -> Sides:
    words = {**PLAIN, "w{0..3}": {"kind": "category", "buckets": 1024}}
    return {
        "plain": decoder(PLAIN, numbers),
        "nulls": decoder({"f{01..28}": {"missing": 0}, "late": LATE}, with_nulls),
        "event_time": decoder({**PLAIN, "at": {"role": "event_time"}}, with_time),
        "words": decoder(words, with_words),
        "names": decoder(of_classes(10), with_names(10), CLASSES),
        "a text of 10 names": decoder(of_classes(10), with_names(10), CLASSES, texts=True),
        "a text of 20,000 names": decoder(of_classes(20_000), with_names(20_000), CLASSES, texts=True),
        "hash32": decoder(criteo(32), with_hashes),
        "hash64": decoder(criteo(64), with_hashes),
    }


def lists() -> Sides:
    made = with_tags(np.random.default_rng(3))
    plain = {name: cells if name == "tags" else cells.astype(float).round(4).tolist() for name, cells in made.items()}
    rows = [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    return {"packed list": decoder(TAGS, with_tags), "json list": of_rows("json", TAGS, rows)}


def nested() -> Sides:
    """28 numbers and a label: flat, in four objects, in an array."""
    values = np.random.default_rng(1).uniform(-10, 10, (1024, 28)).round(4).tolist()
    flat = [dict(zip(NAMES, [*row, i % 2], strict=True)) for i, row in enumerate(values)]
    objects = [
        {f"g{k + 1}": {f"f{j + 1}": row[7 * k + j] for j in range(7)} for k in range(4)} | {"late": i % 2}
        for i, row in enumerate(values)
    ]
    arrays = [{"v": row, "late": i % 2} for i, row in enumerate(values)]
    sides: dict[str, Any] = {"json lines": of_rows("json", PLAIN, flat, lines=True)}
    for form in ("json", "msgpack"):
        sides[f"{form} flat"] = of_rows(form, PLAIN, flat)
        grouped = {"g{1..4}f{1..7}": {"path": "g{1..4}.f{1..7}"}, "late": LATE}
        sides[f"{form} objects"] = of_rows(form, grouped, objects)
        sides[f"{form} array"] = of_rows(form, {"f{0..27}": {"path": "v[{0..27}]"}, "late": LATE}, arrays)
    return sides


@bench(
    "columns",
    {
        (kinds,): [
            Line("packed, 28 float32 with 5 % nulls in every number", "nulls", "plain", 0.4),
            Line("packed, 28 float32 with an event_time", "event_time", "plain", 0.4),
            Line("packed, 28 float32 with 4 columns of words", "words", "plain", 0.4),
            Line("packed, 28 float32 with a label of 10 names", "names", "plain", 0.4),
            Line("13 float32 and 26 hash32 / 30 M rows/s", "hash32", CRITEO, 1),
            Line("13 float32 and 26 hash64 / 30 M rows/s", "hash64", CRITEO),
            Line("a label of 20,000 names, one text a row", "a text of 20,000 names", "a text of 10 names", 0.7),
        ],
        (nested,): [
            Line("json, 28 numbers in 4 objects", "json objects", "json flat", 0.6),
            Line("json, 28 numbers in an array", "json array", "json flat", 0.6),
            Line("msgpack, 28 numbers in 4 objects", "msgpack objects", "msgpack flat", 0.6),
            Line("msgpack, 28 numbers in an array", "msgpack array", "msgpack flat", 0.6),
            Line("json, 1024 rows on lines", "json lines", "json flat", 0.9),
        ],
        (lists,): [Line("packed, 28 float32 and a list of 0 to 8 categories", "packed list", "json list", 10)],
    },
    rates(), "rows/s", seconds=24.0,
)  # fmt: skip
def columns(run: Run, sides: Callable[[], Sides]) -> Sides:
    """Columns that are more than plain numbers, against the same records without them."""
    return sides()
