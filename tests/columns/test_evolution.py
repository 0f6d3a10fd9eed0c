"""Writers' Avro and Protobuf schemas that differ from the job's: what is absorbed, what is refused, and in what words.

Fields of Protobuf are their numbers.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from avro_schemas import logical, nullable, record, written
from long_tables import in_full_all
from looped import over
from proto_schemas import proto
from slots import Tally, decode_rows

from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.columns.schema import Schema
from tests.columns.conftest import spoiled
from tests.oracles.protobuf_wire import sized, tag, varint, zigzag

PLAIN = {"x": {}, "y": {"missing": -1}, "carrier": {"kind": "category", "buckets": 1000, "missing": "none"}}
LATE = {"late": {"role": "label"}}
BY_NAME = Schema.from_columns({**PLAIN, "when": {"role": "event_time", "missing": 0}, **LATE}, "binary_cross_entropy")
BY_NUMBER = Schema.from_columns({**PLAIN, "age": {"path": "user.age", "missing": -2}, **LATE}, "binary_cross_entropy")


def text_of(schema: Any) -> str:
    """A schema as a registry has it: one of Avro, or the text of one of Protobuf."""
    return str(proto(schema)["schema"]) if isinstance(schema, str) else canonical(json.dumps(schema))


def registry_format(reader: Any, writers: dict[int, Any]) -> dict[str, Any]:
    answers = {str(number): (text_of(writer), "") for number, writer in writers.items()}
    name = "protobuf" if isinstance(reader, str) else "avro"
    return {"name": name, "schema": text_of(reader), "frame": "registry", "schemas": answers.get}


def framed(number: int, datum: bytes, index: bytes = b"") -> bytes:
    return b"\0" + struct.pack(">I", number) + index + datum


def decoded(reader: Any, writers: dict[int, Any], *records: bytes) -> tuple[list[dict[str, Any]], list[Tally]]:
    """The records with the blocks and the tally of each."""
    job, format = BY_NUMBER if isinstance(reader, str) else BY_NAME, registry_format(reader, writers)
    found = [decode_rows(format, job, each) for each in records]
    return [blocks for blocks, _ in found], [tally for _, tally in found]


MILLIS = logical("long", "timestamp-millis")
CENTS = logical("bytes", "decimal", precision=9, scale=2)
SUIT = {"type": "enum", "name": "Suit", "symbols": ["AA", "UA"]}
FIELDS: dict[str, Any] = {"x": "double", "y": nullable("float"), "carrier": "string", "when": MILLIS, "late": "int"}
ROW = {"x": 2.0, "y": 3.0, "carrier": "AA", "when": 5000, "late": 1}


def avro(**changed: Any) -> dict[str, Any]:
    """A record of FIELDS, some of them changed, added, or, as None, left out."""
    return record(*((name, of) for name, of in (FIELDS | changed).items() if of is not None))


def alias(name: str, *aliases: str, **more: Any) -> dict[str, Any]:
    document = avro()
    for field in document["fields"]:
        if field["name"] == name:
            field.update(aliases=list(aliases), **more)
    return document


READER = """message Flight { double x = 1; optional float y = 2; string carrier = 3; User user = 4; int64 late = 5; }
message User { float age = 1; string name = 2; }"""
X = tag(1, 1) + struct.pack("<d", 2)
REST = tag(2, 5) + struct.pack("<f", 3) + sized(3, b"AA") + sized(4, tag(1, 5) + struct.pack("<f", 30)) + tag(5, 0)
MESSAGE = X + REST + b"\1"


def other(was: str, now: str) -> str:
    assert was in READER
    return READER.replace(was, now)


ABSORBED: dict[str, tuple[Any, Any, Any]] = {  # the job's schema, the writer's, a row by it
    "the same": (avro(), avro(), ROW),
    "added": (avro(), record(("new", {"type": "array", "items": "string"}), *FIELDS.items()), {**ROW, "new": ["a"]}),
    "added, and read with its default": (alias("x", default=2.0), avro(x=None), ROW),
    "added text, with its default": (alias("carrier", default="AA"), avro(carrier=None), ROW),
    "added time, with its default": (alias("when", default=5000), avro(when=None), ROW),
    "removed, of which the job does not read": (avro(old="string"), avro(), ROW),
    "reordered": (avro(), record(*reversed(FIELDS.items())), ROW),
    "renamed": (alias("x", "miles", "km"), record(("km", "double"), *list(FIELDS.items())[1:]), {**ROW, "km": 2.0}),
    "int to double": (avro(), avro(x="int"), {**ROW, "x": 2}),
    "long to double": (avro(), avro(x="long"), {**ROW, "x": 2}),
    "float to double": (avro(), avro(x="float"), ROW),
    "int to long": (avro(x="long"), avro(x="int"), {**ROW, "x": 2}),
    "long to float": (avro(x="float"), avro(x="long"), {**ROW, "x": 2}),
    "null added to a union": (avro(), avro(x=nullable("double")), ROW),
    "null taken from a union": (avro(), avro(y="float"), ROW),
    "enum value added": (avro(carrier=SUIT), avro(carrier={**SUIT, "symbols": ["B6", "AA"]}), ROW),
    "enum to text": (avro(), avro(carrier=SUIT), ROW),
    "another name of the record": (avro(), {**avro(), "name": "Flight", "namespace": "air"}, ROW),
    "message: the same": (READER, READER, MESSAGE),
    "message: added": (READER, other("int64 late", "repeated string new = 9; int64 late"), MESSAGE + sized(9, b"a")),
    "message: reordered on the wire": (READER, READER, REST + b"\1" + X),
    "message: renamed": (READER, other("double x", "double miles").replace("User", "Person"), MESSAGE),
    "message: its old name is another's": (
        READER, other("double x", "double miles").replace("string carrier", "string x"), MESSAGE),
    "message: in another package": (READER, f"package air; {READER}", MESSAGE),
    "message: float to double": (
        READER, other("double x", "float x"), tag(1, 5) + struct.pack("<f", 2) + REST + b"\1"),
    "message: int32 to double": (READER, other("double x", "int32 x"), tag(1, 0) + b"\2" + REST + b"\1"),
    "message: sint64 to double": (
        READER, other("double x", "sint64 x"), tag(1, 0) + varint(zigzag(2)) + REST + b"\1"),
    "message: int32 to int64": (READER, other("int64 late", "int32 late"), MESSAGE),
    "message: uint32 to int64": (READER, other("int64 late", "uint32 late"), MESSAGE),
    "message: fixed32 to int64": (READER, other("int64 late", "fixed32 late"), MESSAGE[:-2] + tag(5, 5) + b"\1\0\0\0"),
    "message: enum to text": (READER, other("string carrier", "Suit carrier") + " enum Suit { B6 = 0; AA = 1; }",
                              MESSAGE[:14] + tag(3, 0) + b"\1" + MESSAGE[18:]),
    "message: optional taken away": (READER, other("optional float y", "float y"), MESSAGE),
    "message: optional added": (READER, other("double x", "optional double x"), MESSAGE),
}  # fmt: skip


@in_full_all()
@over("name", ABSORBED)
def test_absorbed(name: str, same: Any, take: Any) -> None:
    """Checks the slow meaning too, cut at every byte: dead letters are shown and sent again by it."""
    reader, writer, row = ABSORBED[name]
    if isinstance(reader, str):
        usual, whole = framed(7, MESSAGE, b"\0"), framed(8, row, b"\0")
        worse = [whole[:6] + each for each in spoiled(whole[6:], take, 150)]
    else:
        usual, whole, worse = framed(7, written(reader, {**ROW, "old": "x"})), framed(8, written(writer, row)), []
    (expected,), _ = decoded(reader, {7: reader}, usual)
    (blocks, _), (tally, before) = decoded(reader, {7: reader, 8: writer}, whole, usual)
    assert tally.trained == before.trained == 1, tally.dead_rows
    assert tally.newest_event_time_ms == before.newest_event_time_ms == (-1 if isinstance(reader, str) else 5000)
    for block, values in blocks.items():
        np.testing.assert_array_equal(values, expected[block])
    job, format = BY_NUMBER if isinstance(reader, str) else BY_NAME, registry_format(reader, {8: writer})
    assert same(job, format, whole).trained == 1
    for each in (*spoiled(whole, list, 0), *worse):
        same(job, format, each)


@over(
    ("reader", "writer", "datum", "numbers"),
    [
        (avro(), avro(y=None), ROW, [[2, -1]]), (avro(), avro(x=None), ROW, []),
        (READER, other("optional float y = 2;", ""), X + REST[5:] + b"\1", [[2, -1, 30]]),
        # what a message leaves unwritten is 0 by its own schema
        (READER, other("optional float y", "float y"), X + REST[5:] + b"\1", [[2, 0, 30]]),
        (READER, other("double x = 1;", ""), MESSAGE, []),
    ],
)  # fmt: skip
def test_what_a_writer_has_not_is_missing(reader: Any, writer: Any, datum: Any, numbers: list[Any]) -> None:
    record = framed(8, datum, b"\0") if isinstance(reader, str) else framed(8, written(writer, datum))
    (blocks,), (tally,) = decoded(reader, {8: writer}, record)
    assert blocks["numbers"].tolist() == numbers
    dead = [] if numbers else [("$.x", "expected number, got nothing (missing)")]
    assert [(each.path, each.reason) for each in tally.dead_rows] == dead


@over(
    ("reader", "writer", "path", "difference"),
    [
        (avro(x="int"), avro(x="long"), "$.x", "expected an int, got a long"),
        (avro(x="float"), avro(), "$.x", "expected a float, got a double"),
        (avro(x="long"), avro(x="float"), "$.x", "expected a long, got a float"),
        (avro(), avro(x="string"), "$.x", "expected a double, got text"),
        (avro(), avro(y=["null", "float", "string"]), "$.y", "expected a float, got text"),
        (avro(), avro(carrier="long"), "$.carrier", "expected text, got a long"),
        (avro(), avro(when=logical("long", "timestamp-micros")), "$.when",
         "expected timestamp-millis, got timestamp-micros"),
        (avro(), avro(when="long"), "$.when", "expected timestamp-millis, got a long"),
        (avro(x=CENTS), avro(x={**CENTS, "scale": 3}), "$.x",
         "expected a decimal of scale 2, got a decimal of scale 3"),
        (READER, other("double x", "string x"), "$.x", "expected a double, got a string"),
        (READER, other("optional float y", "optional double y"), "$.y", "expected a float, got a double"),
        (READER, other("string carrier", "int32 carrier"), "$.carrier", "expected a string, got an int32"),
        (READER, other("int64 late", "uint64 late"), "$.late", "expected an int64, got a uint64"),
        (READER, other("double x", "repeated double x"), "$.x", "expected a double, got many values"),
        (READER, other("float age", "double age"), "$.age", "expected a float, got a double"),
        (READER, other("User user", "int32 user"), "$.user", "expected a message, got an int32"),
        (READER, other("Flight", "Payment"), "$", "expected the message Flight, got Payment"),
    ],
)  # fmt: skip
def test_refused_with_the_difference(reader: Any, writer: Any, path: str, difference: str) -> None:
    _, (tally,) = decoded(reader, {8: writer}, framed(8, b"" if isinstance(reader, str) else bytes(40), b"\0"))
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [(path, f"schema 8: {difference}")]


def test_a_difference_in_what_the_job_does_not_read_is_none() -> None:
    now = avro(note="long")
    _, (tally,) = decoded(avro(note="string"), {8: now}, framed(8, written(now, {**ROW, "note": 1})))
    assert tally.trained == 1
    _, (tally,) = decoded(READER, {8: other("string name", "repeated int64 name")}, framed(8, MESSAGE, b"\0"))
    assert tally.trained == 1


def test_messages_of_a_schema_by_their_place() -> None:
    two, good = f"message Other {{ message Flight {{ string z = 1; }} }} {READER}", framed(7, MESSAGE, b"\0")
    _, tallies = decoded(
        READER, {7: READER, 8: two}, good, framed(8, MESSAGE, b"\x02\x02"), framed(8, MESSAGE, b"\x02\x04"),
        framed(8, b"\x04\x00\x00"), framed(8, MESSAGE, b"\0"), framed(8, MESSAGE, b"\x02\x08"),
        good[:5], good[:5] + b"\x80", good[:5] + b"\x03", good[:5] + varint(zigzag(33)), good,
    )  # fmt: skip
    assert [tally.trained for tally in tallies] == [1, 1, *[0] * 8, 1]
    assert [(tally.dead_rows[0].path, tally.dead_rows[0].reason) for tally in tallies[2:-1]] == [
        ("$", "schema 8: expected the message Flight, got User"),
        ("$.x", "schema 8: expected a double, got a string"),
        ("$", "schema 8: expected the message Flight, got Other"),
        ("$", "schema 8: expected the message Flight, got one that it has not"),
        ("$", "the record ends inside a number at byte 5"), ("$", "the record ends inside a number at byte 5"),
        ("$", "expected the place of a message, got one of -2 steps at byte 5"),
        ("$", "expected the place of a message, got one of 33 steps at byte 5"),
    ]  # fmt: skip
