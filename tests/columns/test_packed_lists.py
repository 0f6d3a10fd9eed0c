"""Lists of any length in packed records: by whole blocks they are what the same rows are in JSON, bit for bit."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from looped import over
from packed_wire import Cells, packed
from slots import RowSlot

from streamtrain.columns.formats.packed import TYPES
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema

ROWS = 900  # blocks and a rest
TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "missing": ""}
COLUMNS: dict[str, dict[str, Any]] = {
    "empty": {},
    "value": {"missing": "none"},
    "skip": {"missing": "skip"},
    "dead": {"missing": "dead_letter"},
    "long": {"most": 3},
    "cut": {"most": 3, "cut": True},
    "hash of 64 bits": {"hash_bits": 64, "buckets": 2**31 - 1},
    "full": {"most": 64},
}


def schema_of(**more: Any) -> Schema:
    columns = {"x": {"missing": -1}, "tags": TAGS | more, "stops": {**TAGS, "buckets": 7, "pool": "sum"}, "y": {}}
    return Schema.from_columns(columns | {"late": {"role": "label"}}, "binary_cross_entropy")


def given(longest: int) -> list[dict[str, Any]]:
    """A list every now and then is missing, as are cells of it; a few rows cannot be used."""
    chance = np.random.default_rng(longest)
    entries = ["AA", "\u00e9\u00e8", 7, -3, True, None, "", "x" * 40, *range(100, 140)]

    def cells(most: int) -> list[Any] | None:
        least = most // 2 if most > 32 else 0  # a slot has room for 32 a row
        size = int(chance.integers(least, most + 1))
        return None if chance.random() < 0.04 else [entries[i] for i in chance.integers(0, len(entries), size)]

    rows: list[dict[str, Any]] = []
    for number in range(ROWS):
        row = {"x": number / 3, "tags": cells(longest), "stops": cells(2), "y": number, "late": number % 2}
        rows.append({**row, "x": None} if number % 11 == 5 else row)
    rows[333]["late"] = 0.5
    return rows


def slots(schema: Schema, form: str, records: list[bytes], capacity: int) -> Iterator[tuple[Any, ...]]:
    """What each slot holds and what became of the rows on the way."""
    slot, first = RowSlot(schema, capacity, form), 0
    for record in records:
        for used, told in slot.record(record):
            dead = [(first + each[0], first + each[1], each[3]) for each in told.dead_rows]
            filtered = [(first + each[0], first + each[1], each[2]) for each in told.filtered_rows]
            views = {name: [row.tolist() for row in view[:used]] for name, view in slot.views.items()}
            yield used, dead, filtered, views
        first += ROWS


@over("settings", COLUMNS)
@over("capacity", [1, 64, 1024])
def test_rows_are_those_of_json(settings: str, capacity: int) -> None:
    schema = schema_of(**COLUMNS[settings])
    rows = given({"full": 60, "long": 4}.get(settings, 5))
    ((made,),) = Records(schema, "packed", "rows", ROWS, 1 << 24).blocks(rows, None, False)
    assert b"AA" not in made.value
    found = list(slots(schema, "packed", [made.value], capacity))
    assert found == list(slots(schema, "json", [json.dumps(rows).encode()], capacity))
    assert sum(used for used, *_ in found) < ROWS and sum(used for used, *_ in found) > ROWS / 3
    if settings == "full" and capacity > 1:
        assert any(used < capacity for used, *_ in found[:-1]), "a slot is full of entries before it is of rows"


@over("seed", [hash_seed("tags"), 1])
@over("of", ["hash32", "hash64"])
def test_hashes_are_the_columns_own(of: str, seed: int) -> None:
    schema = Schema.from_columns({"tags": TAGS, "late": {"role": "label"}}, "binary_cross_entropy")
    none, lists = [False] * 20, [[number, 7] for number in range(20)]
    record = packed({"tags": Cells("list", lists, none, seed, of), "late": Cells("u1", [1] * 20, none)})
    ((used, dead, _, views),) = slots(schema, "packed", [record], 64)
    if (of, seed) == ("hash32", hash_seed("tags")):
        assert views[next(name for name in views if name.startswith("list:"))] == lists and not dead
        return
    got = "the hash of another column" if of == "hash32" else "a hash of 64 bits"
    reason = f"expected list of texts, integers or booleans, got {got} at [0]"
    assert used == 0 and dead == [(0, 20, reason)]


@over("of", ["fixed", "list", "floats", "", "hash32"])
def test_lists_longer_than_their_bytes_are_answered_at_once(of: str) -> None:
    """2^32 cells that take no byte each would be read for a minute; of a type that is none nothing is read."""
    schema = Schema.from_columns({"tags": TAGS, "late": {"role": "label"}}, "binary_cross_entropy")
    at = 16 + 24 + 24
    numbers = TYPES.index("list") + 1, TYPES.index(of) + 1 if of else 0
    entries = struct.pack("<IIIBBHI4s", at, 8, 0, *numbers, 4, 0, b"tags")
    entries += struct.pack("<IIIBBHI4s", at + 8, 8, 0, TYPES.index("f4") + 1, 0, 4, 0, b"late")
    ends = np.array([2**31, 2**32 - 1], "<u4").tobytes()
    record = struct.pack("<4sHHII", b"STPK", 2, 2, 2, len(entries)) + entries + ends + np.ones(2, "<f4").tobytes()
    began = time.thread_time()
    ((used, dead, *_),) = slots(schema, "packed", [record], 64)
    assert time.thread_time() - began < 1
    got = "lists longer than its bytes" if of in ("fixed", "hash32") else "lists of a type this build does not know"
    assert used == 0 and dead == [(0, 1, f"expected a column of 2 rows, got {got}")]


def test_an_array_of_two_dimensions_is_a_list_a_row() -> None:
    schema = Schema.from_columns({"tags": TAGS, "late": {"role": "label"}}, "binary_cross_entropy")
    numbers = np.arange(60).reshape(20, 3)
    found = []
    for cells in (numbers, numbers.tolist(), numbers.astype("i2").T.copy().T):
        columns = {"tags": cells, "late": np.zeros(20)}
        ((made,),) = Records(schema, "packed", "rows", 99, 1 << 20).blocks(columns, None, False)
        found.append(list(slots(schema, "packed", [made.value], 64)))
    assert found[0] == found[1] == found[2] and found[0][0][0] == 20
