"""Protobuf records: against Google's package, by every type there is; what bytes may do to the decoder. Repeated fields
as lists: packed or one by one, wherever they come."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from long_tables import examples, in_full_all
from looped import over
from proto_schemas import File, proto
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns.formats.protobuf_schema import canonical, canonical_bytes
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import spoiled
from tests.oracles.protobuf_wire import sized, tag, varint
from tests.oracles.records import encode_rows, oracle

LABEL = {"role": "label"}
PLAIN = Schema.from_columns({"x": {}, "y": {}, "late": LABEL}, "binary_cross_entropy")
CATEGORY = {"kind": "category", "buckets": 1000}

SCALARS: dict[str, list[Any]] = {
    "double": [0.0, 1.5, -1e300, 1e-5, float("inf"), float("nan"), -0.0], "float": [0.0, 0.5, -3e38, -0.0],
    "int32": [0, -1, 2**31 - 1, -(2**31)], "int64": [0, -1, 2**63 - 1, -(2**63), 10**12], "uint32": [0, 2**32 - 1],
    "uint64": [0, 2**64 - 1], "sint32": [0, -1, 2**31 - 1, -(2**31)], "sint64": [0, -1, -(2**63)],
    "fixed32": [0, 2**32 - 1], "fixed64": [0, 2**64 - 1], "sfixed32": [0, -5], "sfixed64": [0, -5],
    "bool": [False, True], "string": ["", "AA", "é" * 40, "x" * 200], "bytes": [b"", b"\x00\xff"],
}  # fmt: skip


def of_scalars(label: str) -> tuple[File, list[str]]:
    file = File("scalars.proto", "air")
    names = [f"of_{kind}" for kind in SCALARS]
    flags = [label] if label else []
    numbered = enumerate(zip(names, SCALARS, strict=True))
    file.add("Row", *((name, 3 * i + 1, kind, *flags) for i, (name, kind) in numbered))
    return file, names


@in_full_all()
@over("label", ["", "optional", "repeated"])
def test_every_type_against_the_slow_meaning_and_googles(same: Any, label: str, take: Any) -> None:
    """Checks what Google's package has written: whole, cut at every byte, and with other bytes in it."""
    file, names = of_scalars(label)
    message_class = file.message("air.Row")
    format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes()))}
    for name, (kind, values) in zip(names, SCALARS.items(), strict=True):
        for settings in ({"missing": 1}, {**CATEGORY, "missing": ""}, {"role": "event_time", "missing": 3}):
            beside = "of_sfixed64" if name != "of_sfixed64" else "of_sfixed32"
            columns = {name: settings, beside: {"missing": 7}, "of_int32" if name != "of_int32" else "of_sint32": LABEL}
            schema = Schema.from_columns(columns, "mean_squared_error")
            for value in values:
                message = message_class()
                if label == "repeated":
                    getattr(message, name).extend([value, value])
                else:
                    setattr(message, name, value)
                    setattr(message, "of_int32" if name != "of_int32" else "of_sint32", 1)
                whole = message.SerializeToString()
                same(schema, format, whole)
                for mutated in spoiled(whole, take, 30):
                    same(schema, format, mutated)
                if kind in ("string", "bytes") or label == "repeated" or settings != {"missing": 1}:
                    continue
                blocks, tally = decode_rows(format, schema, whole)
                with np.errstate(over="ignore"):
                    fits = not abs(np.float32(value)) > 1e18
                value = 1 if value != value else value  # NaN is missing
                if not fits:
                    assert tally.dead_rows[0].path == f"$.{name}"
                else:
                    assert blocks["numbers"][:, 0].tobytes() == np.float32(value).tobytes()


NESTED = """
message Row { User user = 1; float x = 2; Place place = 3; int32 late = 4; repeated User more = 5;
  map<string, User> named = 6; oneof either { float one = 7; User two = 8; int64 three = 9; } }
message User { string name = 1; float age = 2; optional double at = 3; User next = 4; Suit suit = 17; }
message Place { message Inner { float lat = 1; float lon = 2; } Inner inner = 2; }
enum Suit { none = 0; walk = 2; sit = 3; }
"""
INNER = Schema.from_columns(
    {
        "age": {"path": "user.age", "missing": 0}, "x": {}, "home": {"path": "place.inner.lat", "missing": 1},
        "who": {**CATEGORY, "path": "user.name", "missing": ""}, "at": {"path": "user.at", "missing": 2},
        "next": {"path": "user.next.age", "missing": 3}, "one": {"missing": -1}, "late": LABEL,
        "two": {"path": "two.age", "missing": -2}, "suit": {**CATEGORY, "path": "user.suit", "missing": "?"},
        "step": {"path": "two.suit", "missing": -3}, "three": {"missing": -4},
    },
    "binary_cross_entropy",
)  # fmt: skip


def user(**given: Any) -> bytes:
    body = sized(1, given["name"].encode()) if "name" in given else b""
    body += tag(2, 5) + struct.pack("<f", given["age"]) if "age" in given else b""
    body += tag(3, 1) + struct.pack("<d", given["at"]) if "at" in given else b""
    body += sized(4, given["next"]) if "next" in given else b""
    return body + (tag(17, 0) + varint(given["suit"]) if "suit" in given else b"")


def test_messages_within_messages_oneofs_and_doubled_fields(same: Any) -> None:
    format = proto(NESTED)
    late, x = tag(4, 0) + b"\1", tag(2, 5) + struct.pack("<f", 1)
    parts = [
        sized(1, user(name="AA", age=7.0)), sized(1, user(at=0.5, next=user(age=2.0))), sized(1, b""),
        sized(1, user(next=user(name="x"), suit=2)), sized(3, sized(2, tag(1, 5) + struct.pack("<f", 3))),
        sized(3, b""), sized(5, b"\xff\xff"), sized(6, sized(2, user(age=1.0))), tag(7, 5) + struct.pack("<f", 4),
        sized(8, user(age=5.0)), sized(8, user(suit=3)), tag(9, 0) + varint(77), late, x, tag(4, 0) + b"\0",
        tag(1, 0) + b"\5", tag(8, 5) + b"1234", sized(9, b"12"), tag(1000, 0) + b"\5", sized(1, user(suit=9)),
    ]  # fmt: skip
    chance = random.Random(11)
    count, trained = examples(2400), 0
    for _ in range(count):
        whole = b"".join(chance.sample(parts, chance.randint(0, 7))) + late + x
        trained += same(INNER, format, whole).trained
        for mutated in spoiled(whole, list, 6)[chance.randint(0, 8) :: chance.randint(5, 40)]:
            same(INNER, format, mutated)
    assert trained > count / 3


def test_what_is_read_is_what_google_reads() -> None:
    """A third opinion, where ours is a row: fields that come twice, in any order, merged, of a oneof the last."""
    file = File("nested.proto")
    file.enum("Suit", none=0, walk=2, sit=3)
    place = file.add("Place", ("inner", 2, ".Place.Inner"))
    file.add("Inner", ("lat", 1, "float"), ("lon", 2, "float"), within=place)
    file.add("User", ("name", 1, "string"), ("age", 2, "float"), ("at", 3, "double", "optional"), ("next", 4, ".User"),
             ("suit", 17, "=Suit"))  # fmt: skip
    file.add("Row", ("user", 1, ".User"), ("x", 2, "float"), ("place", 3, ".Place"), ("late", 4, "int32"),
             ("more", 5, ".User", "repeated"), ("one", 7, "float", "oneof:either"),
             ("two", 8, ".User", "oneof:either"), ("three", 9, "int64", "oneof:either"))  # fmt: skip
    row_class = file.message("Row")
    format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes())), "message": "Row"}
    names = [name for name, _ in INNER.columns if name != "late"]
    chance = random.Random(2)
    parts = [
        sized(1, user(name="AA", age=7.0)), sized(1, user(at=0.5, next=user(age=2.0))), sized(1, b""),
        sized(3, sized(2, tag(1, 5) + struct.pack("<f", 3))), tag(7, 5) + struct.pack("<f", 4), sized(8, user(age=5.0)),
        sized(8, user(suit=3)), tag(9, 0) + varint(77), sized(1, user(suit=2)), tag(2, 5) + struct.pack("<f", 9),
    ]  # fmt: skip
    for _ in range(300):
        whole = b"".join(chance.choices(parts, k=chance.randint(0, 8)))
        google = row_class.FromString(whole)
        blocks, tally = decode_rows(format, INNER, whole)
        assert tally.trained == 1, tally.dead_rows
        numbers = dict(zip([name for name in names if name not in ("who", "suit")], blocks["numbers"][0], strict=True))
        has = google.HasField
        inner = has("place") and google.place.HasField("inner")
        assert numbers == {
            "age": google.user.age if has("user") else 0, "x": google.x, "home": google.place.inner.lat if inner else 1,
            "at": google.user.at if has("user") and google.user.HasField("at") else 2,
            "next": google.user.next.age if has("user") and google.user.HasField("next") else 3,
            "one": google.one if has("one") else -1, "two": google.two.age if has("two") else -2,
            "step": google.two.suit if has("two") else -3, "three": google.three if has("three") else -4,
        }, text_format.MessageToString(google)  # fmt: skip


ROW = """message Row { float x = 1; string odd = 2; repeated int64 list = 3 [packed = true]; float y = 4;
  int32 late = 5; }"""
GOOD = tag(1, 5) + struct.pack("<f", 1) + tag(4, 5) + struct.pack("<f", 2) + tag(5, 0) + b"\1"


def reason(text: str, record: bytes, columns: Schema = PLAIN, **options: Any) -> tuple[str, str]:
    dead = decode_rows(proto(text, **options), columns, record)[1].dead_rows
    return dead[-1].path, dead[-1].reason


@over(
    ("record", "path", "text"),
    [
        (GOOD[:3], "$.x", "the record ends inside the value at byte 1"),
        (GOOD[:6], "$.y", "the record ends inside the value at byte 6"),
        (GOOD[:11], "$.late", "the record ends inside a number at byte 11"),
        (GOOD + tag(2, 2) + varint(9) + b"abc", "$.odd", "a length of 9, but 3 bytes follow at byte 13"),
        (GOOD + tag(3, 2) + varint(2**60), "$.list", f"a length of {2**60}, but 0 bytes follow at byte 13"),
        (GOOD + tag(9, 2) + varint(5) + b"abc", "$", "a length of 5, but 3 bytes follow at byte 13"),
        (GOOD + tag(5, 0) + b"\xff" * 10 + b"\1", "$.late", "a number of more than 64 bits at byte 13"),
        (GOOD + b"\xff" * 11, "$", "a number of more than 64 bits at byte 12"),
        (GOOD + tag(9, 6) + b"abcd", "$", "expected wire type 0, 1, 2 or 5, got 6 at byte 13"),
        (GOOD + tag(9, 7) + b"abcd", "$", "expected wire type 0, 1, 2 or 5, got 7 at byte 13"),
        (GOOD + tag(9, 3) + tag(9, 4), "$", "a group, which is not supported, at byte 13"),
        (GOOD + tag(9, 4), "$", "a group, which is not supported, at byte 13"),
        (GOOD + varint(5), "$", "expected a field's number from 1 to 536870911, got 0 at byte 12"),
        (GOOD + varint(1 << 35), "$", f"expected a field's number from 1 to 536870911, got {1 << 32} at byte 12"),
        (GOOD + tag(4, 0) + b"\1", "$.y", "expected number, got wire type 0 in the place of a float"),
        (GOOD + b"\0", "$", "expected a field's number from 1 to 536870911, got 0 at byte 12"),
    ],
)  # fmt: skip
def test_hostile_bytes_have_a_path_and_a_byte(record: bytes, path: str, text: str) -> None:
    assert decode_rows(proto(ROW), PLAIN, GOOD)[1].trained == 1
    assert reason(ROW, record) == (path, text)


def test_messages_within_each_other_have_an_end(same: Any) -> None:
    """Messages of the schema end; whatever else is ignored by its length."""
    text = "message Row { float x = 1; float y = 4; int32 late = 5; Node node = 6; } message Node { Node next = 1; }"

    def deep(levels: int, number: int = 6) -> bytes:
        inner = b""
        for _ in range(levels - 1):
            inner = sized(1, inner)
        return GOOD + sized(number, inner)

    for levels in (1, 63, 64, 65, 100):
        assert same(PLAIN, proto(text), deep(levels)).trained == (levels <= 64)
    assert reason(text, deep(100))[0] == "$.node" and "nested deeper than 64 at byte" in reason(text, deep(100))[1]
    assert decode_rows(proto(text), PLAIN, deep(3000, number=7))[1].trained == 1


def test_many_rows_and_the_damage_among_them(same: Any) -> None:
    text = f"message Rows {{ repeated Row rows = 3; }} {ROW}"
    format = proto(text)
    nan = tag(1, 5) + struct.pack("<f", float("nan")) + GOOD[5:]
    rows = sized(3, GOOD) + sized(3, nan) + tag(9, 0) + b"\1" + sized(3, GOOD)
    _, tally = decode_rows(format, PLAIN, rows)
    assert (tally.trained, [(dead.path, dead.row_from) for dead in tally.dead_rows]) == (2, [("$[1].x", 1)])
    assert reason(text, rows + sized(3, GOOD[:7])) == ("$[3].y", "the record ends inside the value at byte 52")
    assert reason(text, rows + tag(3, 0) + b"\1") == ("$[3]", "expected many messages, got wire type 0 at byte 45")
    for size in range(len(rows)):
        same(PLAIN, format, rows[:size])
    assert decode_rows(format, PLAIN, b"")[1] == decode_rows(format, PLAIN, tag(9, 0) + b"\1")[1]
    blocks, _ = decode_rows(proto(ROW), PLAIN, b"")  # an empty message is a row of what goes unwritten
    assert blocks["numbers"].tolist() == [[0, 0]] and blocks["label"].tolist() == [[0]]


def test_what_is_not_there() -> None:
    text = "message Row { float x = 1; optional float y = 4; int32 late = 5; }"
    _, tally = decode_rows(proto(text), PLAIN, tag(5, 0) + b"\1")
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [("$.y", "expected number, got nothing (missing)")]
    # NaN is missing, and not what a field is that goes unwritten: `y` of the same row, and `x` of the next one
    nan, text = tag(1, 5) + struct.pack("<f", float("nan")), "float x = 1; float y = 4; int32 late = 5;"
    rows = sized(3, nan) + sized(3, tag(4, 5) + bytes(4))
    _, tally = decode_rows(proto(f"message Rows {{ repeated Row rows = 3; }} message Row {{ {text} }}"), PLAIN, rows)
    assert (tally.trained, [(dead.path, dead.row_from) for dead in tally.dead_rows]) == (1, [("$[0].x", 0)])
    proto2 = """syntax = "proto2"; message Row { optional float x = 1 [default = 5]; required float y = 4;
      optional int32 late = 5; }"""
    _, tally = decode_rows(proto(proto2), PLAIN, GOOD[5:])
    assert tally.dead_rows[0].path == "$.x"
    edition = """edition = "2023"; option features.field_presence = IMPLICIT; message Row { float x = 1; float y = 4;
      int32 late = 5 [features.field_presence = EXPLICIT]; }"""
    _, tally = decode_rows(proto(edition), PLAIN, GOOD[5:10])
    assert tally.dead_rows[0].path == "$.late"


ENUM = "message Row { float x = 1; float y = 4; Suit late = 5; } enum Suit { none = 0; walk = 2; sit = 3; was = 2; }"


def test_an_enum_is_its_name_where_names_are_taken_and_else_its_number(same: Any) -> None:
    classes = {**LABEL, "classes": ["none", "sit", "walk"]}
    named = Schema.from_columns({"x": {}, "y": {}, "late": classes}, "softmax_cross_entropy")
    text = Schema.from_columns({"x": LABEL, "y": {}, "late": CATEGORY}, "mean_squared_error")
    format = proto(ENUM)
    suit = GOOD[:10]
    for number, index in ((2, 2), (3, 1), (0, 0)):
        record = suit + (tag(5, 0) + varint(number) if number else b"")
        assert decode_rows(format, named, record)[0]["label"].tolist() == [[index]]
        same(named, format, record), same(text, format, record)
        assert decode_rows(format, text, record)[0]["categories"].tolist() == [
            [_native.murmur3(["none", "", "walk", "sit"][number].encode(), _native.murmur3(b"late", 0)) % 1000]
        ]
    unnamed = suit + tag(5, 0) + varint(7)
    assert decode_rows(format, text, unnamed)[0]["categories"].tolist() == [
        [_native.murmur3(b"7", _native.murmur3(b"late", 0)) % 1000]
    ]
    assert decode_rows(format, named, unnamed)[1].dead_rows[0].path == "$.late"
    numbers = Schema.from_columns({"x": {}, "y": {}, "late": LABEL}, "mean_squared_error")
    assert decode_rows(format, numbers, unnamed)[0]["label"].tolist() == [[7]]
    assert decode_rows(format, numbers, suit + tag(5, 0) + varint(-1))[0]["label"].tolist() == [[-1]]


def test_a_timestamp_is_a_time(same: Any) -> None:
    format = proto('import "google/protobuf/timestamp.proto"; message Row { float x = 1; float y = 4; int32 late = 5; '
                   "google.protobuf.Timestamp at = 6; }")  # fmt: skip
    columns = {"x": {}, "y": {}, "at": {"role": "event_time"}, "late": LABEL}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    as_number = Schema.from_columns({"x": {}, "y": LABEL, "at": {}}, "mean_squared_error")

    def at(seconds: int, nanos: int) -> bytes:
        return sized(6, tag(1, 0) + varint(seconds) + tag(2, 0) + varint(nanos))

    for seconds, nanos, ms in ((1_790_000_000, 123_999_999, 1_790_000_000_123), (5, 0, 5000), (0, 0, 0)):
        assert decode_rows(format, schema, GOOD + at(seconds, nanos))[1].newest_event_time_ms == ms
    assert decode_rows(format, as_number, GOOD + at(5, 250_000_000))[0]["numbers"].tolist() == [[1, 5250]]
    for seconds, nanos in ((1, -1), (1, 10**9), (2**40, 0), (-(2**40), 0)):
        _, tally = decode_rows(format, schema, GOOD + at(seconds, nanos))
        (dead,) = tally.dead_rows
        assert dead.path == "$.at" and dead.reason.endswith(f", got a Timestamp of {seconds} s and {nanos} ns")
        same(schema, format, GOOD + at(seconds, nanos))
    for given in (at(-1, 5), at(5, 6) + at(7, 8), sized(6, tag(3, 0) + b"\1" + sized(2, b"x")), sized(6, b"")):
        same(schema, format, GOOD + given)
        for mutated in spoiled(GOOD + given, list, 60):
            same(schema, format, mutated)


@over("frame", ["none", "registry"])
def test_rows_are_written_by_the_schema(frame: str) -> None:
    """The native encoder, the slow one and Google's give the same bytes; a missing cell where the schema has no word
    for it is a mistake."""
    file, names = of_scalars("")
    names = [name for name in names if name != "of_bytes"]
    columns = {name: CATEGORY if name == "of_string" else LABEL if name == "of_bool" else {} for name in names}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    text = canonical(canonical_bytes(file.set_bytes()))
    format = {"name": "protobuf", "schema": text, "frame": frame, "schema_id": 7}
    before = b"\0\0\0\0\7\0" if frame == "registry" else b""
    encoder = _native.RecordEncoder(format, schema.native_columns(), lambda value, column: None)
    assert encoder.most_rows == 1
    chance = random.Random(9)
    for _ in range(200):
        row = {name: chance.choice([v for v in SCALARS[name[3:]] if v not in (float("inf"),) and v == v])
               for name in names}  # fmt: skip
        record = before + file.message("air.Row")(**row).SerializeToString(deterministic=True)
        assert encoder.encode_row(row) == record == encode_rows(format, schema, [row])
    wrong = {"of_int32": 2**31, "of_uint32": -1, "of_float": None, "of_int64": 1.5, "of_bool": 2, "of_double": "x"}
    for name, value in wrong.items():
        bad = {name: value}
        with pytest.raises(ValueError) as caught:
            encoder.encode_row({**row, **bad})
        assert caught.value.args[1] == name
        with pytest.raises(Exception, match=name):
            encode_rows(format, schema, [{**row, **bad}])


def test_nested_rows_enums_and_times_are_written() -> None:
    format = proto('import "google/protobuf/timestamp.proto"; message Row { User user = 1; Suit late = 2; '
                   "google.protobuf.Timestamp at = 3; } message User { optional float age = 1; string name = 2; } "
                   "enum Suit { none = 0; walk = 2; }")  # fmt: skip
    schema = Schema.from_columns(
        {"age": {"path": "user.age", "missing": 0}, "who": {**CATEGORY, "path": "user.name", "missing": ""},
         "at": {"role": "event_time", "unit": "us", "missing": 0}, "late": {**LABEL, "classes": ["none", "walk"]}},
        "binary_cross_entropy")  # fmt: skip
    encoder = _native.RecordEncoder(format, schema.native_columns(), lambda value, column: None)
    rows = [
        {"user": {"age": 2.5, "name": "me"}, "late": "walk", "at": 1_500_250},
        {"user": {"name": "me"}, "late": "2", "at": -1}, {"late": "none"}, {"late": 2, "user": {}},
    ]  # fmt: skip
    for row in rows:
        record = encoder.encode_row(row)
        assert record == encode_rows(format, schema, [row])
        assert decode_rows(format, schema, record)[1].trained == 1
    assert encoder.encode_row(rows[0]).endswith(sized(3, tag(1, 0) + b"\1" + tag(2, 0) + varint(500_250_000)))
    many = {**proto("message Rows { repeated Row rows = 7; } message Row { float x = 1; float y = 2; bool late = 3; }")}
    encoder = _native.RecordEncoder(many, PLAIN.native_columns(), lambda value, column: None)
    assert encoder.most_rows > 1
    given = [{"x": 1.0, "y": 0.0, "late": 1}, {"x": 3.0, "y": 4.0, "late": 0}]
    blocks, _ = decode_rows(many, PLAIN, encode_rows(many, PLAIN, given))
    assert blocks["numbers"].tolist() == [[1, 0], [3, 4]]


OF_LISTS: dict[str, list[Any]] = {
    "double": [0.0, 1.5, float("nan")], "float": [0.5, -3e38], "int32": [0, -1, 2**31 - 1], "int64": [-(2**63), 300],
    "uint32": [0, 2**32 - 1], "uint64": [2**64 - 1], "sint32": [-1, 5], "sint64": [-(2**63)], "fixed32": [2**32 - 1],
    "fixed64": [7, 2**64 - 1], "sfixed32": [-5], "sfixed64": [-5, 1 << 40], "bool": [False, True],
    "string": ["AA", "", "é" * 40], "bytes": [b"\xff"],
}  # fmt: skip
TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "most": 8}
VECTOR: dict[str, Any] = {"kind": "vector", "size": 3}
LATE = {"late": {"role": "label", "missing": 1}}
SPREAD = proto(
    "message Row { repeated int32 tags = 1; Inner inner = 2; oneof either { Inner one = 3; int32 other = 4; } "
    "repeated Row rows = 5; repeated float place = 6; int32 late = 9; } message Inner { repeated int32 tags = 1; }"
)


def schema_of(**columns: dict[str, Any]) -> Schema:
    return Schema.from_columns({**columns, **LATE}, "binary_cross_entropy")


@in_full_all()
@over("kind", OF_LISTS)
def test_lists_of_every_type_against_the_slow_meaning(same: Any, kind: str, take: Any) -> None:
    """Checks what Google's package writes, packed and not: whole, cut at every byte, and with other bytes in it."""
    chance = random.Random(len(kind))
    for packed in (None, False) if kind not in ("string", "bytes") else (None,):
        file = File("lists.proto", "air")
        file.add("Row", ("many", 1, kind, "repeated"), ("late", 2, "int32", "optional"))
        if packed is False:
            file.proto.message_type[0].field[0].options.packed = False
        format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes()))}
        for settings in (TAGS, {**TAGS, "missing": "", "cut": True, "most": 2}, {**VECTOR, "missing": 0}):
            schema = schema_of(many=settings)
            for count in (0, 1, 3, 9):
                message = file.message("air.Row")(late=1)
                message.many.extend(chance.choice(OF_LISTS[kind]) for _ in range(count))
                whole = message.SerializeToString()
                same(schema, format, whole)
                for mutated in spoiled(whole, take, 40):
                    same(schema, format, mutated)


def entries(schema: Schema, record: bytes, column: str) -> list[int] | str:
    """A list's ids; of a dead row why."""
    slot = RowSlot(schema, 4, SPREAD)
    ((rows, tally),) = list(slot.record(record))
    return slot.views[block_name(column)][:1][0].tolist() if rows else str(tally.dead_rows[0][3])


def ids(column: str, *numbers: int) -> list[int]:
    slot = RowSlot(schema_of(**{column: {**TAGS, "missing": ""}}), 4, "json")
    list(slot.record(json.dumps({column: numbers, "late": 1}).encode()))
    return list(slot.views[block_name(column)][:1][0].tolist())


def test_values_come_packed_and_one_by_one_and_in_parts(same: Any) -> None:
    schema = schema_of(tags=TAGS)
    scattered = tag(1, 0) + varint(300) + sized(1, b"\1\2") + tag(9, 0) + b"\1" + sized(1, b"") + tag(1, 0) + b"\3"
    assert entries(schema, scattered, "tags") == ids("tags", 300, 1, 2, 3)
    nested = schema_of(inner={**TAGS, "path": "inner.tags"})
    parts = sized(2, sized(1, b"\1")) + tag(9, 0) + b"\0" + sized(2, sized(1, b"\2") + tag(1, 0) + b"\3")
    assert entries(nested, parts, "inner") == ids("inner", 1, 2, 3)
    either = schema_of(inner={**TAGS, "path": "one.tags", "missing": ""})
    replaced = sized(3, sized(1, b"\1")) + tag(4, 0) + b"\1"  # of a oneof the last is there
    assert entries(either, replaced, "inner") == []
    assert entries(either, replaced + sized(3, sized(1, b"\2")), "inner") == ids("inner", 2)
    for columns, record in ((schema, scattered), (nested, parts), (either, replaced),
                            (either, replaced + sized(3, sized(1, b"\2")))):  # fmt: skip
        for mutated in (record, *spoiled(record, list, 100)):
            same(columns, SPREAD, mutated)


@over(
    ("record", "reason"),
    [
        (sized(1, b"\1\xff"), "got many values, of which the last is cut short"),
        (tag(1, 5) + bytes(4), "got wire type 5 in the place of many values"),
        (b"", "got nothing (missing)"),
        (sized(1, b"\1" * 9), "expected at most 8 values, got 9"),
    ],
)
def test_what_is_no_list(record: bytes, reason: str) -> None:
    """It is told of the cell: a row whose columns do not read it is trained."""
    assert str(entries(schema_of(tags=TAGS), record, "tags")).endswith(reason)
    assert entries(schema_of(inner={**TAGS, "path": "inner.tags", "missing": ""}), record, "inner") == []


def written(schema: Schema, format: dict[str, Any], row: dict[str, Any]) -> bytes:
    """Encodes by the native encoder."""
    ((record,),) = Records(schema, format, "rows", 1, 1 << 20).blocks(row, None, False)
    return bytes(record.value)


@over("kind", [kind for kind in OF_LISTS if kind != "bytes"])
def test_lists_are_written_as_googles_package_reads_them(kind: str) -> None:
    file = File("lists.proto", "air")
    file.add("Row", ("many", 1, kind, "repeated"), ("late", 2, "int32", "optional"))
    format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes()))}
    schema = schema_of(many=TAGS)
    values = [each for each in OF_LISTS[kind] if each == each]
    rows = [{"many": values * 2, "late": 1}, {"many": [], "late": 0}]
    records = [written(schema, format, row) for row in rows]
    assert records == [oracle("protobuf").encode_rows(schema, [row], **without_name(format)) for row in rows]
    message = file.message("air.Row")
    assert list(message.FromString(records[0]).many) == pytest.approx(values * 2) if kind != "string" else True
    assert records[0] == message(many=values * 2, late=1).SerializeToString()
    assert records[1] == message(late=0).SerializeToString()


def without_name(format: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in format.items() if key != "name"}


def test_a_list_that_does_not_fit_is_refused() -> None:
    for cell in (["far"], [2**40], [None], 5, [[1]]):
        with pytest.raises(UserMistake, match=r"tags.*(many values|expected)"):
            written(schema_of(tags=TAGS), SPREAD, {"tags": cell, "late": 1})
