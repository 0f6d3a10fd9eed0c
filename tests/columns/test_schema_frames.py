"""Records name their schema in a header of their message, by id or GUID, else before the value. Every format
that is read behind a registry's frame, natively and slowly, and written with one."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator
from typing import Any

from avro_schemas import record, written
from example_format import encoded
from looped import over
from proto_schemas import proto
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import format_names, needs_schema, options
from streamtrain.columns.formats._protobuf_wire import sized, tag
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema
from tests.columns.conftest import spoiled
from tests.columns.reference import Around

JOB = Schema.from_columns(
    {"x": {}, "name": {"kind": "category", "buckets": 8, "embed": 2}, "y": {"role": "label"}}, "binary_cross_entropy"
)
HEADER = "__value_schema_id"
GUID = uuid.UUID("8a3f0c00-1122-4455-8677-8899aabbccdd")
UNKNOWN = uuid.UUID(int=7)  # another than the id 7
ROW = {"x": 1.5, "name": "a", "y": 1}
AVRO = record(("x", "double"), ("name", "string"), ("y", "int"))
PROTO = "message Row { double x = 1; string name = 2; int64 y = 3; }"
FORMATS: dict[str, tuple[dict[str, Any], bytes, bytes]] = {
    str(format["name"]): (format, datum, behind)  # the last: what follows a schema's name
    for format, datum, behind in (
        ({"name": "json", "schema": ""}, json.dumps(ROW).encode(), b""),
        ({"name": "avro", "schema": canonical(json.dumps(AVRO))}, written(AVRO, ROW), b""),
        (proto(PROTO), tag(1, 1) + struct.pack("<d", 1.5) + sized(2, b"a") + tag(3, 0) + b"\1", b"\0"),
    )
}
FRAME = "expected a registry's frame (0 and a schema id, or 1 and a GUID), got"


def of_id(number: int) -> bytes:
    return b"\0" + struct.pack(">I", number)


def of_guid(guid: uuid.UUID) -> bytes:
    return b"\1" + guid.bytes


def made(name: str) -> tuple[dict[str, Any], bytes, bytes, dict[str, tuple[str, str]]]:
    given, datum, behind = FORMATS[name]
    known = given["schema"] if needs_schema(name) else "true"
    answers = {"7": (known, ""), str(GUID): (known, ""), "8": ("", "no such schema"),
               str(UNKNOWN): ("", "no such schema")}  # fmt: skip
    return {**given, "frame": "registry", "schemas": answers.get}, datum, behind, answers


def test_every_framed_format_is_here() -> None:
    assert set(FORMATS) == {each for each in format_names() if "frame" in options(each)}


def cases(name: str, datum: bytes, behind: bytes) -> Iterator[tuple[str, bytes, list[tuple[str, bytes | None]], str]]:
    """Yields what it is, the value, the message's headers, why it is refused."""
    known, ours = of_guid(GUID) + behind, of_id(7) + behind
    yield "GUID in a header", datum, [(HEADER, known)], ""
    yield "id in a header", datum, [(HEADER, ours)], ""
    yield "id before the value", ours + datum, [], ""
    yield "GUID before the value", known + datum, [], ""
    yield "beside other headers", datum, [("__key_schema_id", of_id(8)), (HEADER, known), ("trace", b"1")], ""
    yield "the last of two", datum, [(HEADER, of_id(8) + behind), (HEADER, known)], ""
    yield "a null header is none", ours + datum, [(HEADER, None)], ""
    yield "the last, which is null", ours + datum, [(HEADER, of_id(8)), (HEADER, None)], ""
    yield "unknown GUID", datum, [(HEADER, of_guid(UNKNOWN) + behind)], f"schema {UNKNOWN}: no such schema"
    yield "unknown id", datum, [(HEADER, of_id(8) + behind)], "schema 8: no such schema"
    yield "unknown before a known", ours + datum, [(HEADER, of_id(8) + behind)], "schema 8: no such schema"
    yield "not asked yet", datum, [(HEADER, of_id(9) + behind)], "schema 9 is not known yet"
    yield "unknown before the value", of_id(8) + behind + datum, [], "schema 8: no such schema"
    yield "not asked yet before the value", of_id(9) + behind + datum, [], "schema 9 is not known yet"
    yield "another form before the value", b"\5" + ours[1:] + datum, [], f"{FRAME} byte 5"
    yield "a short id before the value", ours[:4], [], f"{FRAME} 4 bytes"
    yield "nothing", b"", [], f"{FRAME} 0 bytes"
    yield "another form", datum, [(HEADER, b"\2" + known[1:])], f"{HEADER}: {FRAME} byte 2"
    yield "an empty one too", ours + datum, [(HEADER, known), (HEADER, b"")], ""
    yield "a short GUID", datum, [(HEADER, known[:16])], f"{HEADER}: {FRAME} 16 bytes"
    yield "a short id", datum, [(HEADER, of_id(7)[:4])], f"{HEADER}: {FRAME} 4 bytes"
    more = f"{FRAME} 18 bytes" if not behind else "expected the header's end, got 1 more bytes at byte 18"
    yield "more in the header", datum, [(HEADER, known + b"\0")], f"{HEADER}: {more}"
    if behind:
        at = "the record ends inside a number at byte 17"
        yield "no message's place", datum, [(HEADER, of_guid(GUID))], f"{HEADER}: {at}"
    yield "a short GUID before the value", of_guid(GUID)[:9], [], f"{FRAME} 9 bytes"
    if name == "json":  # whose bytes count from behind the frame
        no_record = "expected an object or an array, got"
        yield "no datum", ours, [], f"{no_record} the record's end at byte 0"
        yield "two frames", ours + ours + datum, [], f"{no_record} byte 0 at byte 0"
        yield "a cut datum", ours + datum[:-1], [], "expected ',' or '}', got the record's end at byte 30"


@over("name", FORMATS)
def test_header_and_prefix(same: Any, name: str) -> None:
    format, datum, behind, _ = made(name)
    filler = _native.BatchFiller(format, RowSlot(JOB, 8).plan)
    for what, value, headers, reason in cases(name, datum, behind):
        around = Around(headers=tuple(headers))
        tally = filler.count([value], around=[_native.RecordAround(0, 0, -1, None, headers)])
        assert [dead[2:4] for dead in tally.dead_rows] == ([("$", reason)] if reason else []), what
        assert tally.trained == (0 if reason else 1), what
        told = same(JOB, format, value, 7, around)
        assert told.trained == tally.trained, what


@over("name", FORMATS)
def test_behind_a_header_the_value_is_the_datum(same: Any, name: str) -> None:
    """A frame before it too makes it another datum, or none; with nothing in it, it is an empty message."""
    format, datum, behind, _ = made(name)
    around = Around(headers=((HEADER, of_guid(GUID) + behind),))
    for value in (of_id(7) + behind + datum, b""):
        assert same(JOB, format, value, 7, around).trained == 0
    assert same(JOB, format, of_id(7) + behind + datum).trained == 1


@over("name", FORMATS)
def test_cut_and_mutated_headers(same: Any, name: str) -> None:
    format, datum, behind, _ = made(name)
    for whole in (of_guid(GUID) + behind, of_id(7) + behind):
        for header in spoiled(whole, list, 40):
            same(JOB, format, datum, 7, Around(headers=((HEADER, header),)))
            same(JOB, format, header + datum)


@over("name", FORMATS)
def test_each_name_is_asked_for_once(name: str) -> None:
    """Wherever it stands."""
    format, datum, behind, answers = made(name)
    asked: list[str] = []

    def ask(schema: str) -> tuple[str, str] | None:
        asked.append(schema)
        return answers.get(schema)

    filler = _native.BatchFiller({**format, "schemas": ask}, RowSlot(JOB, 8).plan)
    frames = [of_guid(GUID) + behind, of_id(7) + behind, of_guid(UNKNOWN) + behind]
    places: list[tuple[bytes, list[tuple[str, bytes | None]]]] = []
    for frame in (*frames, *frames):
        places += [(datum, [(HEADER, frame)]), (frame + datum, [])]
    around = [_native.RecordAround(0, 0, -1, None, headers) for _, headers in places]
    tally = filler.count([value for value, _ in places], around=around)
    assert (tally.trained, tally.dead) == (8, 4)
    assert asked == [str(GUID), "7", str(UNKNOWN)]


@over("name", FORMATS)
def test_without_a_frame_no_header_is_looked_at(same: Any, name: str) -> None:
    format, datum, _, _ = made(name)
    bare = {**format, "frame": "none"}
    assert same(JOB, bare, datum, 7, Around(headers=((HEADER, b"\2"),))).trained == 1


@over("name", FORMATS)
def test_many_rows_behind_what_is_no_frame(name: str) -> None:
    """A record is many rows by its schema alone, whatever came before it."""
    given, place, one = FORMATS[name][0], FORMATS[name][2], FORMATS[name][1]
    datum = b"[%b, %b]" % (one, one)
    if name == "avro":
        many = {"type": "array", "items": AVRO}
        given, datum = {"name": "avro", "schema": canonical(json.dumps(many))}, written(many, [ROW, ROW])
    elif name == "protobuf":
        given, datum = proto(f"message Rows {{ repeated Row rows = 1; }} {PROTO}"), sized(1, one) * 2
    answers = {"7": (str(given["schema"]) or "true", "")}
    filler = _native.BatchFiller({**given, "frame": "registry", "schemas": answers.get}, RowSlot(JOB, 8).plan)
    good = of_id(7) + place + datum
    tally = filler.count([good, b"\0\0", good, of_id(9) + place + datum, good])
    assert (tally.trained, tally.dead) == (6, 2)


@over("name", FORMATS)
def test_encoders_write_the_same_frame(name: str) -> None:
    given = {**FORMATS[name][0], "frame": "registry", "schema_id": 0x01020304}
    for rows in ([ROW], [ROW, {"x": 2.5, "name": "b", "y": 0}])[: 2 if name == "json" else 1]:
        (((_, value, _),),) = Records(JOB, given, "here", 256, 1 << 20).blocks(rows, None, False)
        assert value == encoded(given, JOB, {name: [row[name] for row in rows] for name in ROW})
        assert value[:5] == b"\0\1\2\3\4"
