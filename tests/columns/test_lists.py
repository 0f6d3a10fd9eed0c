"""Cells that are lists: the same in every format and in a program's rows, cut or refused where they are too long."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from avro_schemas import record, written
from example_format import is_columnar, needs_no_option
from long_tables import in_full_all
from looped import over
from packed_wire import Cells, packed
from proto_schemas import proto
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns.formats import Format, format_names, mistakes, record_format
from streamtrain.columns.forms import Names, is_columns
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.paths import nested
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import LARGE, each_way, spoiled
from tests.oracles.records import oracle

TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "most": 3}
PLACE: dict[str, Any] = {"kind": "vector", "size": 3}
PAIRS: dict[str, Any] = {"kind": "sparse", "buckets": 64, "most": 4}
WORDS: dict[str, Any] = {"kind": "text", "buckets": 1000, "most": 6}
LATE = {"late": {"role": "label"}}
AVRO_PLACE: Any = {"type": "array", "items": "float"}
AVRO_TAGS: Any = {"type": "array", "items": ["null", "string", "long", "boolean"]}


def schema_of(**columns: dict[str, Any]) -> Schema:
    return Schema.from_columns({**columns, **LATE}, "binary_cross_entropy")


def cannot(form: str, schema: Schema) -> bool:
    """Returns whether a format has no cells for the columns, whatever a schema of its records says."""
    cells = getattr(record_format(form), "CELLS", ("value",))
    return any(column.entry.cells(column) not in cells for _, column in schema.columns)


# of any lists, and no schema of their own
PLAIN = [name for name in format_names() if needs_no_option(name) and not list(mistakes(name, schema_of(tags=TAGS)))]


def avro(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"name": "avro", "schema": json.dumps(record(*fields, ("late", "long"))), "frame": "none"}


FORMATS = [*PLAIN, avro(("tags", AVRO_TAGS))]


def buckets(name: str, entries: list[str]) -> list[int]:
    return [_native.murmur3(entry.encode(), hash_seed(name)) % 1000 for entry in entries]


def bags(slot: RowSlot, name: str, rows: int) -> list[list[int]]:
    return [row.tolist() for row in slot.views[block_name(name)][:rows]]


@over(
    ("cell", "entries"),
    [(["AA", 7, True, None], ["AA", "7", "true"]), ([], []), (["é"], ["é"]), ([None, "x", "x"], ["x", "x"])],
)
def test_a_list_is_its_categories_hashed(cell: list[Any], entries: list[str]) -> None:
    for way, slot, rows, reason in each_way(schema_of(tags=TAGS), {"tags": cell, "late": 1}, FORMATS):
        assert (rows, reason) == (1, ""), way
        assert bags(slot, "tags", 1) == [buckets("tags", entries)], way


def test_a_list_that_is_too_long_is_refused_or_cut() -> None:
    cell = ["a", "b", "c", "d", "e"]
    for way, _, rows, reason in each_way(schema_of(tags=TAGS), {"tags": cell, "late": 1}, FORMATS):
        assert (rows, reason) == (0, "expected at most 3 values, got 5"), way
    cut = schema_of(tags={**TAGS, "cut": True})
    for way, slot, rows, reason in each_way(cut, {"tags": cell, "late": 1}, FORMATS):
        assert (rows, reason) == (1, ""), way
        assert bags(slot, "tags", 1) == [buckets("tags", cell[:3])], way


@over(
    ("column", "missing", "entries"),
    [(TAGS, "", []), (TAGS, "none", ["none"]), (WORDS, "", []), (WORDS, "Not said", ["not", "said"])],
)
def test_a_missing_cell_is_what_the_column_says(column: dict[str, Any], missing: str, entries: list[str]) -> None:
    slot = RowSlot(schema_of(tags={**column, "missing": missing}), 4, "json")
    cell = b'"a","tags":""' if column is WORDS else b'["a"],"late":1,"tags":null'
    for given in (b'{"late":1}', b'{"tags":null,"late":1}', b'{"late":1,"tags":%b}' % cell):
        ((rows, _),) = list(slot.record(given))
        assert rows == 1 and bags(slot, "tags", 1) == [buckets("tags", entries)], given


@over(
    ("column", "cell", "reason"),
    [
        (TAGS, [1.5], "expected list of texts, integers or booleans, got 1.5 at [0]"),
        (TAGS, ["a", ["b"]], "expected list of texts, integers or booleans, got an array at [1]"),
        (TAGS, "AA", 'expected list of texts, integers or booleans, got "AA"'),
        (PLACE, [1, 2], "expected a list of 3 numbers, got 2"),
        (PLACE, [1, 2, 3, 4], "expected a list of 3 numbers, got 4"),
        (PLACE, [1, None, 3], "expected a list of 3 numbers, got a missing one"),
        (PLACE, [1, "x", 3], 'expected list of 3 numbers, got "x" at [1]'),
        (PLACE, [1, 1e39, 3], f"{LARGE}, got 1e+39"),
        (PLACE, 5, "expected list of 3 numbers, got 5"),
        (PLACE, {"a": 1}, "expected list of 3 numbers, got an object"),
        (PAIRS, [[64, 1]], "expected an index below 64, got 64"),
        (PAIRS, [[-1, 1]], "expected an index below 64, got -1"),
        (PAIRS, {"99999999999999999999999": 1}, "expected an index below 64, got 99999999999999999999999"),
        (PAIRS, [[1, 1e39]], f"{LARGE}, got 1e+39"),
        (PAIRS, [[1, 2, 3]], "got a list of 3 at [0]"),
        (PAIRS, [[1, 2], [1]], "got a list of 1 at [1]"),
        (PAIRS, [[1, None]], "got a missing value at [0]"),
        (PAIRS, [[1, 2], None], "got a missing value at [1]"),
        (PAIRS, [[1.5, 1]], "got 1.5 at [0]"),
        (PAIRS, [[True, 1]], "got true at [0]"),
        (PAIRS, [5], "got 5 at [0]"),
        (PAIRS, [[1, "x"]], 'got "x" at [0]'),
        (PAIRS, "a", 'got "a"'),
        (PAIRS, [[1, 1]] * 5, "expected at most 4 values, got 5"),
        (PAIRS, [[1, float("nan")]], "got a missing value at [0]"),
        (WORDS, 1.5, "expected text, got 1.5"),
        (WORDS, ["a"], "expected text, got an array"),
        (WORDS, {"a": 1}, "expected text, got an object"),
        (TAGS, None, "got nothing (missing)"),
    ],
)
def test_what_is_no_such_cell_is_a_dead_letter(same: Any, column: dict[str, Any], cell: Any, reason: str) -> None:
    schema, record = schema_of(tags=column), json.dumps([{"tags": cell, "late": 1}, {"tags": cell, "late": 0}]).encode()
    assert len(same(schema, "json", record).dead) == 2
    _, tally = decode_rows("json", schema, record)
    assert [each.path for each in tally.dead_rows] == ["$[0].tags"] and tally.dead_rows[0].reason.endswith(reason)
    slot = RowSlot(schema, 4)
    if column is PAIRS or not isinstance(cell, dict):
        ((_, row_tally),) = list(slot.batches([{"tags": cell, "late": 1}]))
        assert [each.path for each in row_tally.dead_rows] == ["$[0].tags"]


NUMBERS = np.arange(60, dtype=np.float32).reshape(20, 3) / 7


def of_vectors(form: str) -> Format:
    """A format with the schema that `place` needs, where it is read with one."""
    if form == "avro":
        return avro(("place", AVRO_PLACE))
    return proto("message Row { repeated float place = 1; int32 late = 2; }") if form == "protobuf" else form


@over("given", [NUMBERS, NUMBERS.astype("f8"), NUMBERS.T.copy().T, NUMBERS.tolist(), list(NUMBERS)])
@over("form", [name for name in format_names() if not cannot(name, schema_of(place=PLACE))])
def test_a_vector_of_every_row(given: Any, form: str) -> None:
    """An array of two dimensions goes into a packed record as it lies."""
    schema = schema_of(place={**PLACE, "missing": -1})
    format_name = of_vectors(form)
    columns = {"place": given, "late": np.zeros(20, int)}
    expected = NUMBERS.tolist()
    blocks = list(Records(schema, format_name, "rows", 9, 1 << 20).blocks(columns, None, False))
    found = [decode_rows(format_name, schema, each.value)[0]["vectors"] for block in blocks for each in block]
    assert np.concatenate(found).tolist() == expected
    if form == "packed":
        assert blocks[0][0].value.count(NUMBERS[:9].tobytes()) == 1


def test_a_missing_vector_of_a_packed_record_has_its_stand_in() -> None:
    schema = schema_of(place={**PLACE, "missing": -1})
    given = [[1, 2, 3] if row % 4 else None for row in range(30)]
    columns = {"place": given, "late": np.zeros(30, int)}
    ((record,),) = Records(schema, "packed", "rows", 90, 1 << 20).blocks(columns, None, False)
    found = decode_rows("packed", schema, record.value)[0]["vectors"].tolist()
    assert found == [row or [-1, -1, -1] for row in given]


def test_what_is_not_finite_or_of_another_size_is_a_dead_row_of_a_packed_record() -> None:
    bad = NUMBERS.copy()
    bad[7, 1] = np.nan
    wide = schema_of(place={**PLACE, "size": 4})
    for schema, dead in ((schema_of(place=PLACE), [7]), (wide, list(range(20)))):
        columns = {"place": bad, "late": np.zeros(20, int)}
        blocks, tally = decode_rows("packed", schema, oracle("packed").encode(schema, columns))
        assert [row for each in tally.dead_rows for row in range(each.row_from, each.row_to)] == dead
        assert len(blocks["vectors"]) == 20 - len(dead)


def test_columns_are_distinguished_from_a_row_by_those_that_are_no_lists() -> None:
    names = Names(("tags", "x"), (), {"tags": 1})
    assert is_columns({"tags": [["a"]], "x": [1]}, names) and not is_columns({"tags": ["a"], "x": 1}, names)
    assert is_columns({"tags": [["a"], []]}, names) and not is_columns({"tags": ["a"]}, names)
    assert is_columns({"tags": np.zeros((2, 2))}, names) and not is_columns({"tags": np.zeros(2)}, names)


def test_a_dict_whose_first_column_is_of_lists_is_no_row_before_it_is_known() -> None:
    records = Records(schema_of(tags=TAGS), "json", "there", 10, 1_000_000)
    for columns in ({"tags": [["a"], ["b"]], "late": [0, 1]}, {"tags": [["a"], ["b"]]}):
        assert records.of_dict(columns) is None
        assert [record.rows for block in records.blocks(columns, None, False) for record in block] == [2]
    assert records.of_dict({"tags": [["a"], 3], "late": 1}) is None
    with pytest.raises(UserMistake, match=r"^row at \$.tags: expected list of texts"):
        list(records.blocks({"tags": ["a", ["b"]], "late": 1}, None, False))


@over("path", [{}, {"path": "user.tags"}])
@over("form", PLAIN)
def test_many_rows_of_lists_alone_are_written_one_by_one(form: str, path: dict[str, str]) -> None:
    columns, cells = {"tags": {**TAGS, **path}, **LATE}, [["a", "b"], [], ["c"]]
    schema = Schema.from_columns(columns, "binary_cross_entropy").for_requests()
    for given in ([nested({"tags": cell}, schema.paths) for cell in cells], {"tags": cells}):
        if path and (is_columnar(form) or isinstance(given, dict)):
            continue
        ((record,),) = Records(schema, form, "rows", 9, 1 << 20).blocks(given, None, False)
        slot = RowSlot(schema, 4, form)
        ((count, _),) = list(slot.record(record.value))
        assert count == 3 and bags(slot, "tags", 3) == [buckets("tags", cell) for cell in cells]


@over("form", PLAIN)
def test_a_slot_is_full_when_a_list_has_no_more_room(form: str) -> None:
    schema = schema_of(tags={**TAGS, "most": 40})
    rows = [{"tags": [f"{row} {i}" for i in range(40)], "late": 1} for row in range(20)]
    ((record,),) = Records(schema, form, "rows", 99, 1 << 20).blocks(rows, None, False)
    slot, found = RowSlot(schema, 8, form), []  # 8 x 32 entries
    for count, _ in slot.record(record.value):
        found.append(bags(slot, "tags", count))
    assert [len(each) for each in found] == [6, 6, 6, 2]
    assert [bag for each in found for bag in each] == [buckets("tags", row["tags"]) for row in rows]


def test_a_format_without_such_cells_is_a_mistake() -> None:
    schema = schema_of(tags=TAGS, place=PLACE)
    assert [name for name, _ in mistakes("csv", schema)] == ["tags", "place"]
    assert not [*mistakes("packed", schema), *mistakes("arrow", schema)]
    assert not list(mistakes("json", schema))
    wrong = avro(("tags", {"type": "array", "items": "bytes"}), ("place", "string"))
    problems = dict(mistakes(wrong, schema))
    assert problems["tags"].endswith("got a list of bytes") and problems["place"].endswith("got no list (string)")


MIXED = schema_of(tags={**TAGS, "missing": ""}, place={**PLACE, "missing": 0.5}, x={"missing": 1})
GOOD = [
    {"tags": ["a", 7, None, True], "place": [1, 2.5, -3], "late": 1},
    {"x": 2, "tags": [], "late": 0},
    {"late": 1, "place": None, "tags": ["\u00e9\n"]},
    {"late": 0, "place": [1, 2, "x"], "tags": [[1], {"a": 2}]},
]
AVRO = avro(("x", ["null", "double"]), ("tags", ["null", AVRO_TAGS]), ("place", ["null", AVRO_PLACE]))


NOT_THERE = [False, True, False]
SEED = hash_seed("tags")
PACKED = [
    Cells("list", [["a", "\u00e9", ""], ["b"], []], NOT_THERE, 0, "text"),
    Cells("list", [["a", "b"], [], ["b", "", "a"]], NOT_THERE, 0, "words"),
    Cells("list", [["aa"], ["bb", "cc"], ["\u00e9"]], NOT_THERE, 2, "fixed"),
    Cells("list", [[7, 8], [1], [9, 2**32 - 1]], NOT_THERE, SEED, "hash32"),
    Cells("list", [[2**63]], [False], SEED, "hash64"),
    Cells("list", [[-1, 2**63 - 1], [5], []], [False] * 3, 0, "i8"),
    Cells("list", [[1, 2.5], [], [3]], [False] * 3, 0, "f4"),
    Cells("list", [[True], [False], [2]], [False] * 3, 0, "bool"),
    Cells("list", [["a"], [], ["b"]], [False] * 3, 0, "bytes"),
]


TABLES = [name for name in format_names() if is_columnar(name) and not cannot(name, MIXED)]


FULL = [{name: row.get(name) for name in ("x", "tags", "place", "late")} for row in GOOD[:3]]
COLUMNS = {name: [row[name] for row in FULL] for name in FULL[0]}
VECTORS = {"place": [[1, 2, 3], None, [4, 5, np.nan]], "late": [1, 0, 1], "x": [1, 2, 3]}
EXAMPLES: list[tuple[Format, bytes]] = [
    *(("json", json.dumps(record).encode()) for record in (GOOD, *GOOD, COLUMNS)),
    *(("msgpack", msgpack.packb(record)) for record in (GOOD, *GOOD, COLUMNS)),
    *((AVRO, written(json.loads(AVRO["schema"]), row)) for row in FULL),
    *((form, oracle(form).encode(MIXED, each)) for form in TABLES for each in (VECTORS, COLUMNS)),
    # a block that tells its size, and one that lies
    (AVRO, b"\0\2\5\x08\2\2a\2\2b\0\0\0\2"), (AVRO, b"\0\2\5\x06\2\2a\2\2b\0\0\0\2"),
    *(("packed", packed({"tags": cells, "late": Cells("u1", [1, 0, 1], [False] * 3)})) for cells in PACKED),
]  # fmt: skip


@over("form", TABLES)
def test_tables_are_written_as_python_does(form: str) -> None:
    plain = [{name: row.get(name) for name in ("x", "tags", "place", "late")} for row in [*GOOD[:3], GOOD[0]]]
    native = _native.RecordEncoder(form, MIXED.native_columns(), lambda value, column: None)
    native.read_rows(plain)
    columns = {name: [row[name] for row in plain] for name in ("x", "tags", "place", "late")}
    ours, theirs = native.encode(0, 4), oracle(form).encode(MIXED, columns)
    if form == "arrow":  # which pyarrow lays out its own way
        ours, theirs = (pa.ipc.open_stream(each).read_all() for each in (ours, theirs))
    assert ours == theirs
    assert decode_rows(form, MIXED, native.encode(1, 3))[1].trained == 3


@in_full_all()
@over(("form", "record"), EXAMPLES)
def test_native_and_slow_agree_cut_and_mutated(same: Any, form: Format, record: bytes, take: Any) -> None:
    for capacity in (1, 3, 64):
        same(MIXED, form, record, capacity)
    for worse in spoiled(record, take, 300):
        same(MIXED, form, worse)


def test_transforms_neither_read_nor_make_lists() -> None:
    listed = {"lower": "word", "kind": "category", "list": True, "buckets": 9}
    for transforms in ({"n": {"lower": "tags"}}, {"n": listed}):
        with pytest.raises(UserMistake):
            Schema.from_columns(
                {"tags": TAGS, "word": {"kind": "category", "buckets": 9}, **LATE}, "binary_cross_entropy", transforms
            )
