"""A packed record's rows go into the slot by blocks, and what comes of them is what comes of each as its own record;
lists of any length in packed records."""

from __future__ import annotations

import json
import struct
import time
from itertools import product
from typing import Any

import numpy as np
from long_tables import in_full_all
from looped import over
from numpy_predict import murmur3
from packed_wire import Cells, packed, packed_alone, texts
from slots import RowSlot, decode_rows

from streamtrain.columns.formats.packed import MAGIC, TYPES, VERSION
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from tests.columns.murmur3 import murmur3_64
from tests.oracles.records import oracle

ROWS = 700  # blocks and a rest
NUMBERS = TYPES[: TYPES.index("bool")]
FIXED = ["ax", "bb", "é", "12"]  # of 2 bytes
SEED = hash_seed("x")
WORDS = ["ax", "bee", "", "déjà", "none of them"]
ODD = {0.0: -1e-60, 0.02: float("nan"), 0.3: 1e300, 0.6: 0.5, 1.0: -0.0}  # by the fraction that is missing
WRITTEN = {"decimal": ["1.5", "", "x"], "moment": ["2026-11-22T02:10:00Z", "2026-11-22T02:10:00.5+01:00", "2026-11-22"]}
KINDS: dict[str, dict[str, Any]] = {
    "number": {},
    "category": {"kind": "category", "buckets": 1000},
    "score": {"standardize": True},
    "vector": {"kind": "vector", "size": 3},
    "lists": {"kind": "category", "list": True, "buckets": 1000, "most": 3},
    "long_hash": {"kind": "category", "buckets": 1000, "hash_bits": 64},
    "time": {"role": "event_time"},
    "weight": {"role": "weight"},
    "decimal": {"parse": "decimal"},
    "moment": {"role": "event_time", "parse": "iso8601"},
    "label": {"role": "label"},
    "class": {"role": "label", "classes": ["ax", "bee", "déjà"]},
    "index": {"role": "label", "classes": 3},
    "pair": {"role": "label", "classes": ["ax", "bee"]},
}
STAND_INS = {
    "number": 2.5,
    "score": "mean",
    "category": "bee",
    "lists": "bee",
    "long_hash": "bee",
    "time": 7,
    "moment": 7,
    "decimal": 2.5,
    "weight": 0.5,
    "class": "bee",
    "index": 2,
    "pair": "bee",
}


def loss_of(kind: str) -> str:
    if kind == "number_label":
        return "mean_squared_error"
    return "softmax_cross_entropy" if kind in ("class", "index") else "binary_cross_entropy"


def cells_of(type_name: str, kind: str, fraction: float, chance: np.random.Generator) -> Cells:
    """Some of the values no such column can take."""
    missing = (chance.random(ROWS) < fraction).tolist()
    if type_name in ("text", "words") and kind in WRITTEN:
        return Cells(type_name, chance.choice(WRITTEN[kind], ROWS, p=[0.6, 0.39, 0.01]).tolist(), missing)
    if type_name in ("text", "words", "bytes"):
        odds = [0.45, 0.45, 0.06, 0.03, 0.01] if kind in ("class", "pair") else [0.4, 0.3, 0.1, 0.1, 0.1]
        return Cells(type_name, chance.choice(WORDS, ROWS, p=odds).tolist(), missing)
    if type_name == "fixed":
        return Cells(type_name, chance.choice(FIXED, ROWS, p=[0.5, 0.4, 0.05, 0.05]).tolist(), missing, 2)
    if type_name.startswith("hash"):
        hashes = chance.integers(0, 2**32 if type_name == "hash32" else 2**63, ROWS).tolist()
        return Cells(type_name, hashes, missing, SEED if chance.random() < 0.8 else 0)
    if type_name == "floats":
        lists = chance.normal(size=(ROWS, 3)).round(3).tolist()
        lists[int(chance.integers(ROWS))][1] = ODD.get(fraction, 1)
        return Cells(type_name, lists, missing, 3)
    if type_name == "list" and kind == "lists":
        return Cells(type_name, [WORDS[: int(size)] for size in chance.integers(0, 5, ROWS)], missing, 0, "text")
    if type_name == "list":
        return Cells(type_name, [[1.5] * int(size) for size in chance.integers(0, 5, ROWS)], missing, 0, "f4")
    few = [0, 1, 1, 0, 2] if chance.random() < 0.5 else [0, 1]
    values: list[Any] = chance.choice(few, ROWS).tolist()
    if type_name in ("f4", "f8"):
        values[int(chance.integers(ROWS))] = ODD.get(fraction, 1)
    if type_name == "i8" and chance.random() < 0.5:
        values[int(chance.integers(ROWS))] = int(chance.choice([-1, -(2**63), 2**62, 2**53 + 1]))
    if any(missing) and type_name != "bool":
        values[missing.index(True)] = 120  # what lies in a missing cell counts for nothing
    if type_name == "bool":
        values = [value if value < 2 or chance.random() < 0.01 else 1 for value in values]
    return Cells(type_name, values, missing)


def filled(schema: Schema, records: list[bytes], format_name: str = "packed") -> tuple[Any, ...]:
    """One slot of all records: its bytes, the reasons of dead rows, the columns that left rows out, the newest time,
    and how many rows train."""
    slot, dead, filtered, newest, trained, first = RowSlot(schema, ROWS, format_name), [], [], -1, 0, 0
    slot.filler.open(slot.slot)
    for record in records:
        assert slot.filler.fill(record, 0)
        tally = slot.filler.take_tally()
        dead += [(first + row, each[3]) for each in tally.dead_rows for row in range(each[0], each[1])]
        filtered += [(first + row, column) for begin, end, column in tally.filtered_rows for row in range(begin, end)]
        newest = max(newest, tally.newest_event_time_ms)
        trained += tally.trained
        first += tally.trained + tally.dead + tally.filtered
    slot.filler.close()
    return slot.slot.tobytes(), dead, filtered, newest, trained


@in_full_all()
@over("kind", [*KINDS, "number_label"])
@over("missing", ["dead_letter", "skip", "value"])
def test_rows_by_blocks_are_rows_one_by_one(kind: str, missing: str, take: Any) -> None:
    chance = np.random.default_rng([len(kind), len(missing), 5])
    settings = dict(KINDS.get(kind, {"role": "label"}))
    settings["missing"] = STAND_INS.get(kind, 1) if missing == "value" else missing
    columns: dict[str, Any] = {"x": settings, "y": {"missing": -3}, "z": {"missing": "skip"}}
    if settings.get("role") != "label":
        columns["late"] = {"role": "label", "missing": 1}
    schema = Schema.from_columns(columns, loss_of(kind))
    dead = 0
    for type_name, fraction in take(product(TYPES, ODD)):
        given = {
            "x": cells_of(type_name, kind, fraction, chance),
            "y": cells_of("f4", "number", 0.1, chance),
            "z": cells_of("f4", "number", 0.01, chance),
            "late": cells_of("f4", "label", 0.1, chance),
        }
        given = {name: cells for name, cells in given.items() if name in columns}
        found = filled(schema, [packed(given)])
        assert found == filled(schema, packed_alone(given)), (type_name, fraction)
        assert found[4] + len(found[1]) + len(found[2]) == ROWS
        dead += len(found[1])
    assert dead


@over("buckets", [1, 2, 1000, 2**31 - 1])
@over("bits", [32, 64])
def test_a_hash_is_as_good_as_its_text(bits: int, buckets: int) -> None:
    settings = {"kind": "category", "buckets": buckets, "hash_bits": bits}
    schema = Schema.from_columns({"x": settings, "late": {"role": "label"}}, "binary_cross_entropy")
    words: list[Any] = [f"word {i}" for i in range(ROWS - 3)] + [7, True, "é"]
    rows = [{"x": word, "late": 1} for word in words]
    record = oracle("packed").encode(schema, {"x": words, "late": [1] * ROWS})
    assert b"word" not in record
    found = filled(schema, [record])
    assert found == filled(schema, [json.dumps(rows).encode()], "json") and found[4] == ROWS
    hashed, seed = (murmur3_64, murmur3)[bits == 32], murmur3(b"x", 0)
    texts = ["true" if word is True else str(word) for word in words]
    blocks, _ = decode_rows("packed", schema, record)
    assert blocks["categories"][:, 0].tolist() == [hashed(text.encode(), seed) % buckets for text in texts]
    assert len(filled(schema, [record[:36] + b"y" + record[37:]])[1]) == ROWS  # another name: a column there is not
    reason = "expected text, integer or boolean, got the hash of another column"
    assert filled(schema, [record[:32] + bytes(4) + record[36:]])[1] == [(row, reason) for row in range(ROWS)]


def test_words_are_those_of_their_record() -> None:
    """Checks records with as many words, and one after another without any."""
    schema = Schema.from_columns({"x": KINDS["category"], "late": {"role": "label"}}, "binary_cross_entropy")
    slot, other = RowSlot(schema, 64), RowSlot(schema, 64)  # which decodes no words, and so forgets none
    for words in (["ax", "bee"], ["sea", "bee"], ["ax", "bee"], ["ax", "ax"], ["bee", "ax"]):
        columns = {"x": Cells("words", words * 16, [False] * 32), "late": Cells("f4", [1] * 32, [False] * 32)}
        assert [tally.trained for _, tally in slot.record(packed(columns))] == [32]
        together = slot.slot.tobytes()
        assert [
            tally.trained for _, tally in other.record(packed({**columns, "x": columns["x"]._replace(type="text")}))
        ] == [32]
        assert other.slot.tobytes() == together


def test_of_a_column_given_twice_the_last_counts_and_the_others_cost_nothing() -> None:
    """A directory of entries of one name, each at a table of as many words: read once."""
    schema = Schema.from_columns({"x": KINDS["category"], "late": {"role": "label"}}, "binary_cross_entropy")
    words = [f"w{i}" for i in range(20_000)]
    body = Cells("words", words[:2], [False] * 2).bytes()
    table = struct.pack("<2II", 0, 1, len(words)) + texts(words)
    times = 20_000
    at = 16 + 24 * (times + 2)
    entries = struct.pack("<IIIBBHI4s", at, len(table), 0, TYPES.index("words") + 1, 0, 1, 0, b"x") * times
    entries += struct.pack("<IIIBBHI4s", at + len(table), len(body), 0, TYPES.index("words") + 1, 0, 1, 0, b"x")
    late = np.ones(2, "<f4").tobytes()
    entries += struct.pack("<IIIBBHI4s", at + len(table) + len(body), 8, 0, TYPES.index("f4") + 1, 0, 4, 0, b"late")
    record = struct.pack("<4sHHII", MAGIC, VERSION, times + 2, 2, len(entries)) + entries + table + body + late
    slot, plain = RowSlot(schema, 4), RowSlot(schema, 4)
    began = time.process_time()
    assert [tally.trained for _, tally in slot.record(record)] == [2]
    assert time.process_time() - began < 2, "a second for each 100,000 bytes when each entry is read"
    none = [False] * 2
    given = packed({"x": Cells("words", words[:2], none), "late": Cells("f4", [1, 1], none)})
    assert [tally.trained for _, tally in plain.record(given)] == [2]
    assert slot.slot.tobytes() == plain.slot.tobytes()


TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "missing": ""}


def decoded(schema: Schema, record: bytes) -> tuple[int, list[Any], list[Any]]:
    """Returns how many rows train, the dead rows with their reasons, and the lists."""
    slot = RowSlot(schema, 64)
    ((used, tally),) = slot.record(record)
    lists = [row.tolist() for row in slot.views[block_name("tags")][:used]]
    return used, [(each[0], each[1], each[3]) for each in tally.dead_rows], lists


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
        ((record,),) = Records(schema, "packed", "rows", 99, 1 << 20).blocks(columns, None, False)
        found.append(decoded(schema, record.value))
    assert found[0] == found[1] == found[2] and found[0][0] == 20
