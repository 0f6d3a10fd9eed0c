"""Writers' Protobuf schemas that differ from the job's: fields are their numbers; what is absorbed, what is refused."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from long_tables import in_full_all
from looped import over
from proto_schemas import proto
from slots import Tally, decode_rows

from streamtrain.columns.formats._protobuf_wire import sized, tag, varint, zigzag
from streamtrain.columns.schema import Schema
from tests.columns.conftest import spoiled

JOB = Schema.from_columns(
    {
        "x": {}, "y": {"missing": -1}, "carrier": {"kind": "category", "buckets": 1000, "missing": "none"},
        "age": {"path": "user.age", "missing": -2}, "late": {"role": "label"},
    },
    "binary_cross_entropy",
)  # fmt: skip
READER = """message Flight { double x = 1; optional float y = 2; string carrier = 3; User user = 4; int64 late = 5; }
message User { float age = 1; string name = 2; }"""
ROW = tag(1, 1) + struct.pack("<d", 2) + tag(2, 5) + struct.pack("<f", 3) + sized(3, b"AA")
ROW += sized(4, tag(1, 5) + struct.pack("<f", 30)) + tag(5, 0) + b"\1"


def framed(number: int, message: bytes, index: bytes = b"\0") -> bytes:
    return b"\0" + struct.pack(">I", number) + index + message


def decoded(reader: str, writers: dict[int, str], *records: bytes, **refused: str) -> tuple[list[Any], list[Tally]]:
    """The records through one decoder, each with its rows and tally."""
    format = registry_format(reader, writers, **refused)
    found = [decode_rows(format, JOB, each) for each in records]
    return [blocks for blocks, _ in found], [tally for _, tally in found]


def registry_format(reader: str, writers: dict[int, str], **refused: str) -> dict[str, Any]:
    answers = {str(number): (proto(text)["schema"], "") for number, text in writers.items()}
    answers |= {name.removeprefix("id_"): ("", why) for name, why in refused.items()}
    return proto(reader, frame="registry", schemas=answers.get)


def other(was: str, now: str) -> str:
    assert was in READER
    return READER.replace(was, now)


REST = ROW[9:]
ABSORBED: dict[str, tuple[str, bytes]] = {
    "the same": (READER, ROW),
    "added": (other("int64 late", "repeated string new = 9; int64 late"), ROW + sized(9, b"a")),
    "reordered on the wire": (READER, REST + ROW[:9]),
    "renamed": (other("double x", "double miles").replace("User", "Person"), ROW),
    "its old name is another's": (other("double x", "double miles").replace("string carrier", "string x"), ROW),
    "in another package": (f"package air; {READER}", ROW),
    "float to double": (other("double x", "float x"), tag(1, 5) + struct.pack("<f", 2) + REST),
    "int32 to double": (other("double x", "int32 x"), tag(1, 0) + b"\2" + REST),
    "sint64 to double": (other("double x", "sint64 x"), tag(1, 0) + varint(zigzag(2)) + REST),
    "int32 to int64": (other("int64 late", "int32 late"), ROW),
    "uint32 to int64": (other("int64 late", "uint32 late"), ROW),
    "fixed32 to int64": (other("int64 late", "fixed32 late"), ROW[:-2] + tag(5, 5) + b"\1\0\0\0"),
    "enum to text": (other("string carrier", "Suit carrier") + " enum Suit { B6 = 0; AA = 1; }",
                     ROW[:14] + tag(3, 0) + b"\1" + ROW[18:]),
    "optional taken away": (other("optional float y", "float y"), ROW),
    "optional added": (other("double x", "optional double x"), ROW),
}  # fmt: skip


@in_full_all()
@over("name", ABSORBED)
def test_absorbed(name: str, same: Any, take: Any) -> None:
    """As the slow meaning has it too, cut at every byte: what a dead letter's rows are shown as, and sent again by."""
    writer, row = ABSORBED[name]
    expected, _ = decoded(READER, {7: READER}, framed(7, ROW))
    blocks, (told, before) = decoded(READER, {7: READER, 8: writer}, framed(8, row), framed(7, ROW))
    assert told.trained == before.trained == 1, told.dead_rows
    for block, values in blocks[0].items():
        np.testing.assert_array_equal(values, expected[0][block])
    whole, format = framed(8, row), registry_format(READER, {8: writer})
    for worse in (whole, *spoiled(whole, take, 0), *(whole[:6] + each for each in spoiled(whole[6:], take, 150))):
        same(JOB, format, worse)


def test_what_a_writer_has_not_is_missing() -> None:
    """And what it leaves unwritten is 0, by its own schema."""
    blocks, _ = decoded(READER, {8: other("optional float y = 2;", "")}, framed(8, ROW[:9] + ROW[14:]))
    assert blocks[0]["numbers"].tolist() == [[2, -1, 30]]
    blocks, _ = decoded(READER, {8: other("optional float y", "float y")}, framed(8, ROW[:9] + ROW[14:]))
    assert blocks[0]["numbers"].tolist() == [[2, 0, 30]]
    _, (tally,) = decoded(READER, {8: other("double x = 1;", "")}, framed(8, ROW))
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [("$.x", "expected number, got nothing (missing)")]


@over(
    ("was", "now", "path", "difference"),
    [
        ("double x", "string x", "$.x", "expected a double, got a string"),
        ("optional float y", "optional double y", "$.y", "expected a float, got a double"),
        ("string carrier", "int32 carrier", "$.carrier", "expected a string, got an int32"),
        ("int64 late", "uint64 late", "$.late", "expected an int64, got a uint64"),
        ("double x", "repeated double x", "$.x", "expected a double, got many values"),
        ("float age", "double age", "$.age", "expected a float, got a double"),
        ("User user", "int32 user", "$.user", "expected a message, got an int32"),
        ("Flight", "Payment", "$", "expected the message Flight, got Payment"),
    ],
)
def test_refused_with_the_difference(was: str, now: str, path: str, difference: str) -> None:
    _, (tally,) = decoded(READER, {8: other(was, now)}, framed(8, b""))
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [(path, f"schema 8: {difference}")]


def test_a_difference_in_what_the_job_does_not_read_is_none() -> None:
    _, (tally,) = decoded(READER, {8: other("string name", "repeated int64 name")}, framed(8, ROW))
    assert tally.trained == 1


def test_frames() -> None:
    """What is none, which message of a schema it is, an id that the registry knows not, one that waits."""
    two = f"message Other {{ message Flight {{ string z = 1; }} }} {READER}"
    good = framed(7, ROW)
    _, told = decoded(
        READER, {7: READER, 8: two}, good, framed(8, ROW, b"\x02\x02"), framed(8, ROW, b"\x02\x04"),
        framed(8, b"", b"\x04\x00\x00"), framed(8, ROW), framed(8, ROW, b"\x02\x08"), b"\5" + good[1:], b"\0\0\0",
        b"", good[:5], good[:5] + b"\x80", good[:5] + b"\x03", good[:5] + varint(zigzag(33)), framed(9, ROW),
        framed(10, ROW), good, id_9="the registry knows no such schema",
    )  # fmt: skip
    assert [tally.trained for tally in told] == [1, 1, *[0] * 13, 1]
    frame = "expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
    assert [(tally.dead_rows[0].path, tally.dead_rows[0].reason) for tally in told[2:-1]] == [
        ("$", "schema 8: expected the message Flight, got User"),
        ("$.x", "schema 8: expected a double, got a string"),
        ("$", "schema 8: expected the message Flight, got Other"),
        ("$", "schema 8: expected the message Flight, got one that it has not"),
        ("$", f"{frame} byte 5"), ("$", f"{frame} 3 bytes"), ("$", f"{frame} 0 bytes"),
        ("$", "the record ends inside a number at byte 5"), ("$", "the record ends inside a number at byte 5"),
        ("$", "expected the place of a message, got one of -2 steps at byte 5"),
        ("$", "expected the place of a message, got one of 33 steps at byte 5"),
        ("$", "schema 9: the registry knows no such schema"), ("$", "schema 10 is not known yet"),
    ]  # fmt: skip
