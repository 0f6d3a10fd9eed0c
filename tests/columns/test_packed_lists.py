"""Lists of any length in packed records, beyond what test_differential.py draws."""

from __future__ import annotations

import struct
import time
from typing import Any

import numpy as np
from looped import over
from packed_wire import Cells, packed
from slots import RowSlot

from streamtrain.columns.formats.packed import TYPES
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema

TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "missing": ""}


def decoded(schema: Schema, record: bytes) -> tuple[int, list[Any], list[Any]]:
    """How many rows train, the dead ones with their reasons, and the lists."""
    slot = RowSlot(schema, 64)
    ((used, told),) = slot.record(record)
    lists = [row.tolist() for row in slot.views[block_name("tags")][:used]]
    return used, [(each[0], each[1], each[3]) for each in told.dead_rows], lists


@over("seed", [hash_seed("tags"), 1])
@over("of", ["hash32", "hash64"])
def test_hashes_are_the_columns_own(of: str, seed: int) -> None:
    schema = Schema.from_columns({"tags": TAGS, "late": {"role": "label"}}, "binary_cross_entropy")
    none, lists = [False] * 20, [[number, 7] for number in range(20)]
    record = packed({"tags": Cells("list", lists, none, seed, of), "late": Cells("u1", [1] * 20, none)})
    used, dead, found = decoded(schema, record)
    if (of, seed) == ("hash32", hash_seed("tags")):
        assert found == lists and not dead
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
    used, dead, _ = decoded(schema, record)
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
        found.append(decoded(schema, made.value))
    assert found[0] == found[1] == found[2] and found[0][0] == 20
