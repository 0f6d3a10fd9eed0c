"""Avro records: against fastavro, by every type there is; what bytes may do to the decoder."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pytest
from avro_schemas import logical, nullable, record, written
from long_tables import in_full_all
from looped import over
from slots import decode_rows

from streamtrain import _native
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.columns.schema import Schema
from tests.columns.conftest import spoiled
from tests.oracles.avro_values import number
from tests.oracles.records import encode_records, encode_rows

LABEL = {"role": "label"}
PLAIN = Schema.from_columns({"x": {}, "y": {}, "late": LABEL}, "binary_cross_entropy")
NODE = record(("value", "long"), ("next", nullable("Node")), name="Node")


def avro(schema: Any) -> dict[str, Any]:
    return {"name": "avro", "schema": canonical(json.dumps(schema))}


def reason(schema: Any, datum: bytes, columns: Schema = PLAIN) -> tuple[str, str]:
    dead = decode_rows(avro(schema), columns, datum)[1].dead_rows
    return dead[-1].path, dead[-1].reason


TYPES: list[tuple[Any, list[Any]]] = [
    ("null", [None]), ("boolean", [True, False]), ("int", [0, -1, 2**31 - 1, -(2**31)]),
    ("long", [0, 63, 64, -64, -65, 2**63 - 1, -(2**63), 10**12]), ("float", [0.5, -3e38, float("nan")]),
    ("double", [1e-5, -1e300, float("inf")]), ("bytes", [b"", b"\x00\xff"]), ("string", ["", "AA", "é" * 40]),
    (record(("a", "int"), ("b", nullable("string")), name="Inner"), [{"a": 1, "b": None}, {"a": -5, "b": "x"}]),
    ({"type": "enum", "name": "Suit", "symbols": ["walk", "sit"]}, ["walk", "sit"]),
    ({"type": "array", "items": "float"}, [[], [1.0], [0.0] * 200]),
    ({"type": "array", "items": nullable("string")}, [["a", None], []]),
    ({"type": "map", "values": "long"}, [{}, {"a": 1, "b": -2}]),
    ({"type": "fixed", "name": "Five", "size": 5}, [b"12345"]),
    (NODE, [{"value": 1, "next": {"value": 2, "next": {"value": 3, "next": None}}}]),
    (["string", "null", "long", "double"], ["x", None, 5, 2.5]),
    (nullable(record(("a", "double"), ("b", "double"), name="Pair")), [None, {"a": 1.0, "b": 2.0}]),
    (logical("int", "date"), [date(2026, 2, 3), date(1969, 1, 1)]),
    (logical("long", "timestamp-millis"), [datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)]),
    (logical("long", "timestamp-micros"), [datetime(1960, 1, 2, 3, 4, 5, 6, tzinfo=UTC)]),
    (logical("bytes", "decimal", precision=20, scale=2), [Decimal("12.34"), Decimal("-0.01"), Decimal(0)]),
    (logical("bytes", "decimal", precision=60, scale=0), [Decimal(10**40), Decimal(-(10**19)), Decimal(7)]),
]  # fmt: skip


@in_full_all()
@over("reads_odd", [False, True])
@over("many", [False, True])
def test_every_type_against_the_slow_meaning(same: Any, reads_odd: bool, many: bool, take: Any) -> None:
    """Checks data that fastavro has written: whole, cut, and with other bytes in it."""
    for number_, (of, values) in enumerate(TYPES):
        row = record(("x", "float"), ("odd", of), ("id", nullable(of if of == "int" else "string")), ("y", "double"),
                     ("late", "int"))  # fmt: skip
        format = avro({"type": "array", "items": row} if many else row)
        columns: dict[str, Any] = {"x": {}, "y": {}, "late": LABEL}
        if reads_odd:
            columns["odd"] = [
                {"missing": 1}, {"kind": "category", "buckets": 50, "missing": ""},
                {"role": "event_time", "missing": 3},
            ][number_ % 3]  # fmt: skip
        for kind in ({}, {"kind": "category", "buckets": 9}, {"role": "event_time", "missing": 3}):
            schema = Schema.from_columns({**columns, **({"odd": kind} if reads_odd else {})}, "binary_cross_entropy")
            rows = [{"x": 1.5, "odd": value, "id": None, "y": -2.0, "late": 1} for value in values]
            for datum in [rows] if many else rows:
                whole = written(json.loads(format["schema"]), datum)
                same(schema, format, whole)
                for worse in spoiled(whole, take, 25, b"\0\1\2\x80\xff"):
                    same(schema, format, worse)
            if not reads_odd:
                break


def test_cells_of_logical_types_are_what_they_stand_for() -> None:
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    row = record(
        ("price", logical("bytes", "decimal", precision=9, scale=2)),
        ("big", {**logical("fixed", "decimal", precision=38, scale=3), "name": "Big", "size": 16}),
        ("id", {**logical("fixed", "uuid"), "name": "Id", "size": 16}),
        ("text_id", logical("string", "uuid")),
        ("when", nullable(logical("long", "timestamp-micros"))),
        ("day", logical("int", "date")),
        ("late", {"type": "enum", "name": "Late", "symbols": ["no", "yes"]}),
    )
    columns = {
        "price": {}, "big": {}, "id": {"kind": "category", "buckets": 1000}, "when": {"role": "event_time"},
        "text_id": {"kind": "category", "buckets": 1000}, "day": {}, "late": {**LABEL, "classes": ["yes", "no"]},
    }  # fmt: skip
    schema = Schema.from_columns(columns, "softmax_cross_entropy")
    raw = bytes.fromhex(uuid.replace("-", ""))
    datum = b"".join([
        number(2), (-1999).to_bytes(2, "big", signed=True), (10**20 + 1).to_bytes(16, "big", signed=True), raw,
        number(36), uuid.encode(), number(1), number(-1), number(20_000), number(1),
    ])  # fmt: skip
    blocks, tally = decode_rows(avro(row), schema, datum)
    assert blocks["numbers"].tolist() == [[np.float32(-19.99), np.float32(1e17), 20_000]]
    assert blocks["label"].tolist() == [[0]] and tally.newest_event_time_ms == -1  # a microsecond before 1970
    seeds = [_native.murmur3(name.encode(), 0) for name in ("id", "text_id")]
    assert blocks["categories"].tolist() == [[_native.murmur3(uuid.encode(), seed) % 1000 for seed in seeds]]


@over(
    ("unit", "count"),
    [("millis", 1_790_000_000_123), ("micros", 1_790_000_000_123_456), ("nanos", 1_790_000_000_123_456_789)],
)
def test_a_time_is_in_the_unit_its_schema_says(unit: str, count: int) -> None:
    row = record(("x", "float"), ("at", logical("long", f"timestamp-{unit}")), ("late", "boolean"))
    schema = Schema.from_columns({"x": {}, "at": {"role": "event_time"}, "late": LABEL}, "binary_cross_entropy")
    _, tally = decode_rows(avro(row), schema, struct.pack("<f", 1) + number(count) + b"\1")
    assert tally.newest_event_time_ms == 1_790_000_000_123


ROW = record(("x", "float"), ("odd", nullable("string")), ("list", {"type": "array", "items": "long"}), ("y", "float"),
             ("late", "int"))  # fmt: skip
GOOD = struct.pack("<f", 1) + b"\0\0" + struct.pack("<f", 2) + number(1)


@over(
    ("datum", "path", "text"),
    [
        (GOOD[:3], "$.x", "the record ends inside the value at byte 0"),
        (GOOD[:4] + number(7) + GOOD[5:], "$.odd", "expected a union branch below 2, got 7 at byte 4"),
        (GOOD[:4] + number(-1) + GOOD[5:], "$.odd", "expected a union branch below 2, got -1 at byte 4"),
        (GOOD[:4] + number(1) + number(-3) + GOOD, "$.odd", "a length of -3, but 11 bytes follow at byte 5"),
        (GOOD[:4] + number(1) + number(2**40), "$.odd", f"a length of {2**40}, but 0 bytes follow at byte 5"),
        (GOOD[:5] + number(2**60), "$.list", f"a block claims {2**60} elements, but 0 bytes follow at byte 5"),
        (GOOD[:5] + number(-(2**60)) + number(5), "$.list", "a length of 5, but 0 bytes follow at byte 14"),
        (GOOD[:5] + number(-1) + number(-5) + GOOD, "$.list", "a length of -5, but 11 bytes follow at byte 6"),
        (GOOD[:5] + b"\xff" * 10 + b"\1", "$.list", "a number of more than 64 bits at byte 5"),
        (GOOD[:5] + b"\xff" * 9 + b"\2", "$.list", "a number of more than 64 bits at byte 5"),
        (GOOD[:5] + b"\x80", "$.list", "the record ends inside a number at byte 5"),
        (GOOD[:8], "$.y", "the record ends inside the value at byte 6"),
        (GOOD + b"123", "$", "expected the record's end, got 3 more bytes at byte 11"),
        (b"", "$", "expected a record, got an empty value"),
    ],
)  # fmt: skip
def test_hostile_bytes_have_a_path_and_a_byte(datum: bytes, path: str, text: str) -> None:
    assert decode_rows(avro(ROW), PLAIN, GOOD)[1].trained == 1
    assert reason(ROW, datum) == (path, text)


def test_rows_before_the_damage_train_and_bad_cells_are_rows_of_their_own() -> None:
    many = {"type": "array", "items": ROW}
    nan = struct.pack("<f", float("nan")) + GOOD[4:]
    _, tally = decode_rows(avro(many), PLAIN, number(3) + GOOD + nan + GOOD + number(0))
    assert (tally.trained, [(dead.path, dead.row_from) for dead in tally.dead_rows]) == (2, [("$[1].x", 1)])
    _, tally = decode_rows(avro(many), PLAIN, number(3) + GOOD + GOOD + GOOD[:5])
    assert tally.trained == 2 and (tally.dead_rows[0].path, tally.dead_rows[0].remainder) == ("$[2].list", True)
    assert reason(many, number(2**60) + GOOD)[0] == "$[0]"
    assert reason(many, number(-(2**60)) + number(11) + GOOD)[0] == "$[0]"
    assert reason(many, number(1) + GOOD + number(0) + b"x") == (
        "$[1]", "expected the record's end, got 1 more bytes at byte 13",
    )  # fmt: skip


def test_records_within_each_other_have_an_end(same: Any) -> None:
    row = record(("x", "float"), ("chain", NODE), ("y", "float"), ("late", "int"))

    def deep(nodes: int) -> bytes:
        chain = (number(0) + number(1)) * (nodes - 1) + number(0) + number(0)
        return struct.pack("<f", 1) + chain + struct.pack("<f", 1) + number(0)

    for nodes in (1, 63, 64, 65, 66):
        assert same(PLAIN, avro(row), deep(nodes)).trained == (nodes <= 64)
    assert reason(row, deep(100_000)) == ("$.chain", "records nested deeper than 64 at byte 132")


def test_an_array_passed_over_costs_what_its_bytes_cost() -> None:
    """A block may claim any number of elements that take no bytes."""
    row = record(("x", "float"), ("y", "float"), ("late", "int"), ("list", {"type": "array", "items": "null"}))
    start = struct.pack("<ff", 1, 1) + number(1)
    sized = start + number(-(2**62)) + number(0) + number(0)
    assert decode_rows(avro(row), PLAIN, sized)[1].trained == 1
    assert "claims" in reason(row, start + number(2**62))[1]


def test_names_are_full_in_the_settings() -> None:
    inner = record(("n", "int"), name="Leaf")
    top = record(("a", inner), ("b", "Leaf"), ("c", "air.Leaf"), ("d", record(("e", "int"), name="Bare", namespace="")),
                 name="Row", namespace="air")  # fmt: skip
    document = json.loads(canonical(json.dumps(top)))
    types = [field["type"] for field in document["fields"]]
    assert (document["name"], types[0]["name"], types[1:3], types[3]["name"]) == (
        "air.Row", "air.Leaf", ["air.Leaf"] * 2, "Bare",
    )  # fmt: skip
    assert canonical(canonical(json.dumps(top))) == canonical(json.dumps(top))


def read(schema: Any, datum: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(datum), fastavro.parse_schema(dict(schema)), None)


def test_rows_are_written_by_the_schema() -> None:
    row = record(
        ("x", "int"), ("y", nullable("float")), ("other", "string"), ("at", logical("long", "timestamp-micros")),
        ("kind", {"type": "enum", "name": "K", "symbols": ["a", "b"]}), ("late", "boolean"),
    )  # fmt: skip
    row["fields"][2]["default"] = "none"
    columns = {"x": {}, "y": {"missing": 0}, "at": {"role": "event_time"},
               "kind": {"kind": "category", "buckets": 9}, "late": LABEL}  # fmt: skip
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    encoder = _native.RecordEncoder(avro(row), schema.native_columns(), lambda value, column: None)
    given = {"x": 7.0, "y": 1.5, "at": 1_700_000_000_000, "kind": "b", "late": 1}
    content = encoder.encode_row(given)
    assert encoder.most_rows == 1 and content == encode_rows(avro(row), schema, [given])
    assert read(row, content) == {**given, "other": "none", "late": True,
                                      "at": datetime.fromtimestamp(1_700_000_000, UTC)}  # fmt: skip
    assert read(row, encoder.encode_row({**given, "y": None, "other": "kept"}))["other"] == "kept"
    for bad, name in (({"x": 1.5}, "x"), ({"x": None}, "x"), ({"x": 2**31}, "x"), ({"kind": "c"}, "kind")):
        with pytest.raises(ValueError) as caught:
            encoder.encode_row({**given, **bad})
        assert caught.value.args[1] == name


def test_rows_that_are_sent_again_have_a_record_each() -> None:
    row = record(("x", "float"), ("y", "float"), ("late", "int"))
    rows = [{"x": 1.0, "y": 2.0, "late": 0}, {"x": 3.0, "y": 4.0, "late": 1}]
    each = encode_records(avro(row), PLAIN, rows)
    assert [decode_rows(avro(row), PLAIN, one)[0]["numbers"].tolist() for one in each] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert len(encode_records(avro({"type": "array", "items": row}), PLAIN, rows)) == 1


def test_a_decimal_of_too_many_bytes_is_none() -> None:
    row = record(("x", logical("bytes", "decimal", precision=60, scale=0)), ("y", "float"), ("late", "int"))
    rest = struct.pack("<f", 1) + number(1)
    blocks, _ = decode_rows(avro(row), PLAIN, number(32) + b"\x00" * 31 + b"\x07" + rest)
    assert blocks["numbers"].tolist() == [[7.0, 1.0]]
    assert reason(row, number(33) + bytes(33) + rest) == ("$.x", "expected number, got a decimal of 33 bytes")


MORE = {"type": "array", "items": NODE}
USER = record(("name", "string"), ("age", "float"), ("at", nullable("double")), ("more", MORE), name="User")
NESTED = Schema.from_columns(
    {
        "age": {"path": "user.age", "missing": 0}, "x": {}, "home": {"path": "place.inner.lat", "missing": 1},
        "who": {"kind": "category", "buckets": 9, "path": "user.name", "missing": ""},
        "at": {"path": "user.at", "missing": 2}, "nowhere": {"path": "list.x", "missing": 3}, "late": LABEL,
    },
    "binary_cross_entropy",
)  # fmt: skip
LIST = {"type": "array", "items": "int"}
PLACE = record(("inner", nullable(record(("lat", "float"), ("lon", "float"), name="Inner"))), name="Place")


@in_full_all()
@over("user", [USER, nullable(USER), ["long", "null", USER]], ids=["record", "nullable", "one of"])
@over("many", [False, True])
def test_columns_within_records(same: Any, user: Any, many: bool, take: Any) -> None:
    row = record(("user", user), ("x", "float"), ("place", nullable(PLACE)), ("list", LIST), ("late", "int"))
    node = {"value": 1, "next": {"value": 2, "next": None}}
    someone = {"name": "AA", "age": 7.0, "at": 0.5, "more": [node, node]}
    rows = [
        {"user": {**someone, "at": at}, "x": 1.0, "place": place, "list": [5], "late": 1}
        for at in (None, 0.25) for place in (None, {"inner": None}, {"inner": {"lat": 3.0, "lon": 4.0}})
    ]  # fmt: skip
    if user is not USER:
        rows.append({**rows[0], "user": None})
    format = avro({"type": "array", "items": row} if many else row)
    for datum in [rows] if many else rows:
        whole = written(json.loads(format["schema"]), datum)
        assert same(NESTED, format, whole).trained == (len(rows) if many else 1)
        for worse in spoiled(whole, take, 200, b"\0\1\2\4\x80\xff"):
            same(NESTED, format, worse)


def test_a_nullable_field_alone_in_a_nullable_record(same: Any) -> None:
    row = record(("user", nullable(record(("age", nullable("float")), name="User"))), ("x", "float"), ("late", "int"))
    columns = {"age": {"path": "user.age", "missing": 0}, "x": {}, "late": LABEL}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    for user in (None, {"age": None}, {"age": 2.0}):
        assert same(schema, avro(row), written(row, {"user": user, "x": 1.0, "late": 1})).trained == 1


def test_columns_within_records_are_written() -> None:
    row = record(("user", nullable(json.loads(json.dumps(USER)))), ("x", "float"), ("list", LIST), ("late", "int"))
    row["fields"][2]["default"] = []
    row["fields"][0]["type"][1]["fields"][3]["default"] = []
    who = {"kind": "category", "buckets": 9, "missing": "", "path": "user.name"}
    columns = {"x": {}, "age": {"path": "user.age", "missing": 0}, "who": who, "late": LABEL}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    encoder = _native.RecordEncoder(avro(row), schema.native_columns(), lambda value, column: None)
    given = {"x": 1.5, "user": {"age": 2.0, "name": "me"}, "late": 1}
    content = encoder.encode_row(given)
    assert read(row, content) == {**given, "list": [], "user": {**given["user"], "at": None, "more": []}}
    assert content == encode_rows(avro(row), schema, [given])
    assert read(row, encoder.encode_row({"x": 1.5, "late": 1}))["user"] is None


def test_a_cut_behind_a_record_is_in_the_rows_own_field(same: Any) -> None:
    """Though numbers side by side in the slot are read together where they are side by side in the row."""
    user = record(("name", "string"), ("age", "float"), name="User")
    row = record(("user", user), ("x", "float"), ("late", "int"))
    schema = Schema.from_columns({"age": {"path": "user.age"}, "x": {}, "late": LABEL}, "binary_cross_entropy")
    whole = written(row, {"user": {"name": "AA", "age": 1.0}, "x": 2.0, "late": 1})
    for size in range(len(whole)):
        same(schema, avro(row), whole[:size])


def test_a_symbol_behind_the_last_is_none() -> None:
    row = record(("x", "float"), ("kind", {"type": "enum", "name": "K", "symbols": ["a", "b"]}), ("late", "int"))
    columns = {"x": {}, "kind": {"kind": "category", "buckets": 9}, "late": LABEL}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    for index, text in ((2, "symbol 2 of 2"), (-1, "symbol -1 of 2")):
        datum = struct.pack("<f", 1) + number(index) + number(1)
        assert reason(row, datum, schema) == ("$.kind", f"expected text, integer or boolean, got {text}")
