"""Records that name their schema in a header of their message, by id or GUID, else before the value, in every format
that is read behind a registry's frame; a job file's Avro or Protobuf schema, and schemas that refer to others."""

from __future__ import annotations

import base64
import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from avro_schemas import logical, nullable, record, written
from example_format import encoded
from google.protobuf import descriptor_pb2
from looped import over
from proto_schemas import File, proto
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import avro, format_names, needs_schema, options, protobuf
from streamtrain.columns.formats.avro_schema import canonical, rows_of
from streamtrain.columns.formats.protobuf_schema import messages_of
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.job import Job, JobMistakes
from tests.columns.conftest import spoiled
from tests.columns.reference import Around
from tests.oracles.protobuf_wire import sized, tag

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


def frame_format(name: str) -> tuple[dict[str, Any], bytes, bytes, dict[str, tuple[str, str]]]:
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
    format, datum, behind, _ = frame_format(name)
    filler = _native.BatchFiller(format, RowSlot(JOB, 8).plan)
    for what, value, headers, reason in cases(name, datum, behind):
        around = Around(headers=tuple(headers))
        tally = filler.count([value], around=[_native.RecordAround(0, 0, -1, None, headers)])
        assert [dead[2:4] for dead in tally.dead_rows] == ([("$", reason)] if reason else []), what
        assert tally.trained == (0 if reason else 1), what
        result = same(JOB, format, value, 7, around)
        assert result.trained == tally.trained, what


@over("name", FORMATS)
def test_behind_a_header_the_value_is_the_datum(same: Any, name: str) -> None:
    """A frame before it too makes it another datum, or none; with nothing in it, it is an empty message."""
    format, datum, behind, _ = frame_format(name)
    around = Around(headers=((HEADER, of_guid(GUID) + behind),))
    for value in (of_id(7) + behind + datum, b""):
        assert same(JOB, format, value, 7, around).trained == 0
    assert same(JOB, format, of_id(7) + behind + datum).trained == 1


@over("name", FORMATS)
def test_cut_and_mutated_headers(same: Any, name: str) -> None:
    format, datum, behind, _ = frame_format(name)
    for whole in (of_guid(GUID) + behind, of_id(7) + behind):
        for header in spoiled(whole, list, 40):
            same(JOB, format, datum, 7, Around(headers=((HEADER, header),)))
            same(JOB, format, header + datum)


@over("name", FORMATS)
def test_each_name_is_requested_once(name: str) -> None:
    """Wherever it stands."""
    format, datum, behind, answers = frame_format(name)
    requests: list[str] = []

    def ask(schema: str) -> tuple[str, str] | None:
        requests.append(schema)
        return answers.get(schema)

    filler = _native.BatchFiller({**format, "schemas": ask}, RowSlot(JOB, 8).plan)
    frames = [of_guid(GUID) + behind, of_id(7) + behind, of_guid(UNKNOWN) + behind]
    places: list[tuple[bytes, list[tuple[str, bytes | None]]]] = []
    for frame in (*frames, *frames):
        places += [(datum, [(HEADER, frame)]), (frame + datum, [])]
    around = [_native.RecordAround(0, 0, -1, None, headers) for _, headers in places]
    tally = filler.count([value for value, _ in places], around=around)
    assert (tally.trained, tally.dead) == (8, 4)
    assert requests == [str(GUID), "7", str(UNKNOWN)]


@over("name", FORMATS)
def test_without_a_frame_no_header_is_looked_at(same: Any, name: str) -> None:
    format, datum, _, _ = frame_format(name)
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


ODD = record(("x", "float"), ("odd", nullable("string")), ("list", {"type": "array", "items": "long"}), ("y", "float"),
             ("late", "int"))  # fmt: skip
USER = nullable(record(("age", "float"), ("more", {"type": "array", "items": "long"}), name="User"))
MESSAGE = """message Row { float x = 1; string odd = 2; repeated int64 list = 3 [packed = true]; float y = 4;
  int32 late = 5; }"""


@pytest.fixture
def job(tmp_path: Path) -> Any:
    def load(schema: Any, columns: str, text: str = "") -> Job:
        name, ending = ("avro", "avsc") if isinstance(schema, dict) else ("protobuf", "proto")
        written = json.dumps(schema, indent=4) if name == "avro" else f'syntax = "proto3"; {schema}'
        (tmp_path / f"flight.{ending}").write_bytes(schema if isinstance(schema, bytes) else written.encode())
        path, text = tmp_path / "job.toml", text or f'schema = "flight.{ending}"'
        path.write_text(f'name = "a"\n[kafka]\nbootstrap.servers = "x:1"\n[records]\nformat = "{name}"\n{text}\n'
                        f'[columns]\n{columns}\nlate = {{ role = "label" }}\n')  # fmt: skip
        return Job.load(path)

    return load


@over(
    ("schema", "again", "text"),
    [
        (ODD, ODD, f"schema = '''{json.dumps({**ODD, 'doc': 'of a flight'})}'''"),
        (MESSAGE, MESSAGE.replace(" ", "  /* a row */ "), ""),
    ],
)
def test_the_schema_stands_beside_the_job_file_and_its_text_in_the_settings(
    job: Any, schema: Any, again: Any, text: str
) -> None:
    original = job(schema, "x = {}")
    assert original.effective()["records"]["schema"] == original.records.named["schema"]
    assert Job.from_effective(original.effective()).digest() == original.digest() == job(again, "x = {}", text).digest()
    other = {"format": original.records.named["name"], "schema": "flight.avsc"}
    with pytest.raises(JobMistakes, match="no text"):  # what a manifest says reads no file
        Job.from_effective({**original.effective(), "records": other})


def test_the_text_in_the_settings_is_as_short_as_it_may_be(job: Any) -> None:
    text = job(ODD, "x = {}").records.named["schema"]
    assert json.loads(text)["name"] == "Row" and " " not in text
    assert messages_of(job(MESSAGE, "x = {}").records.named["schema"]).named("").name == "Row"


def test_a_message_of_a_descriptor_set(job: Any) -> None:
    file = File("air.proto", "air").importing()
    file.add("Row", ("x", 1, "float"), ("late", 2, "bool"), ("at", 3, ".google.protobuf.Timestamp"))
    file.add("Other", ("z", 1, "float"), ("late", 2, "bool"), ("d", 3, ".google.protobuf.DoubleValue"))
    of_set = job(file.set_bytes(), "x = {}")
    assert messages_of(of_set.records.named["schema"]).named("").name == "air.Row"
    other = job(file.set_bytes(), 'z = {}\nv = { path = "d.value" }', 'schema = "flight.proto"\nmessage = "air.Other"')
    assert other.records.named["message"] == "air.Other"


@over(
    ("schema", "columns", "message"),
    [
        (ODD, "z = {}", "columns.z: expected a field of the schema's Row, got none named 'z'"),
        (ODD, "lst = {}", "did you mean 'list'?"),
        (ODD, 'x = { path = "user.x" }', "columns.x.path: expected a field of the schema's, within records alone, got"),
        (ODD, "odd = {}", "columns.odd: expected a field of the schema that the column can take, got text (string)"),
        (ODD, "list = {}", "got an array"),
        (record(("x", "null"), ("late", "int")), "x = {}", "got null alone"),
        (record(("x", "int"), ("at", logical("long", "local-timestamp-millis")), ("late", "int")),
         'x = {}\nat = { role = "event_time" }', "local-timestamp-millis, of which no zone is known"),
        (record(("x", "int"), ("at", logical("int", "time-millis")), ("late", "int")),
         'x = {}\nat = { role = "event_time" }', "time-millis, a time of any day"),
        (record(("x", "int"), ("at", logical("long", "timestamp-micros")), ("late", "int")),
         'x = {}\nat = { role = "event_time", unit = "s" }', 'timestamp-micros where unit = "s"'),
        ({"type": "map", "values": "int"}, "x = {}", "expected a record, or an array of them, got map"),
        (record(("x", "flaot")), "x = {}", '"flaot", which nothing before it defines'),
        (record(("x", "int"), ("x", "int")), "x = {}", "expected fields of Row with different names"),
        (record(("x", ["int", "int"])), "x = {}", "a union of different types"),
        (record(("x", {"type": "enum", "name": "E", "symbols": []})), "x = {}", "expected the symbols of E"),
        (record(("x", {"type": "fixed", "name": "F", "size": -1})), "x = {}", "expected the size of F"),
        (record(("x", record(("a", "int"), name="Row"))), "x = {}", "Row is defined twice"),
        *((record(("user", USER), ("x", "float"), ("list", {"type": "array", "items": "int"}), ("late", "int")),
           f'x = {{ path = "{path}" }}', message) for path, message in (
            ("user.agee", "within records alone, got none at user.agee"), ("list[0]", "got none at list[0]"),
            ("user.more", "got an array"), ("user", "got a record"),
        )),
        (MESSAGE, "z = {}", "columns.z: expected a field of the schema's Row, got none named 'z'"),
        (MESSAGE, "lst = {}", "did you mean 'list'?"),
        (MESSAGE, "list = {}", "expected a field of the schema that the column can take, got many values"),
        (MESSAGE, "odd = {}", "got text (string)"),
        (MESSAGE, 'odd = { kind = "category", list = true, buckets = 9 }', "got no list (string)"),
        (MESSAGE.replace("int64 list", "string list"), 'list = { kind = "vector", size = 2 }',
         "got many of text (string)"),
        (MESSAGE.replace("int64 list", "bytes list"), 'list = { kind = "category", list = true, buckets = 9 }',
         "got many of bytes"),
        (MESSAGE, 'x = { path = "user.x" }', "columns.x.path: expected a field of the schema's, within messages"),
        ("message Row { bytes x = 1; bool late = 2; }", "x = {}", "got bytes"),
        ("message Row { Row x = 1; bool late = 2; }", "x = {}", "got a message"),
        ("message Row { In in = 1; bool late = 2; } message In { V v = 1; } message V { double value = 1; }",
         'x = { path = "in.v" }', 'got a message; its value stands at path = "in.v.value"'),
        ("message Row { bool x = 1; bool late = 2; int32 y = 3;}", 'y = {}\nx = { role = "event_time" }', "got a bool"),
        ("message Row { Far x = 1; }", "x = {}", "Row.x: its type 'Far' is nowhere defined"),
        ("message Row { float x = 1; float x = 2; }", "x = {}", "Row.x: its name or its number is another field's too"),
        ("message Row { float x = 1; float y = 1; }", "x = {}", "Row.y: its name or its number is another field's too"),
        ("message Row { float x = 0; }", "x = {}", "Row.x: expected a number from 1 to 536870911, got 0"),
        ("message Row {\n float x = y; }", "x = {}", "line 2: expected a number, got 'y'"),
        ("message Row { float x = 1 }", "x = {}", "line 1: expected ';', got '}'"),
        ("message Row { float x = 1;", "x = {}", "line 1: expected a field's type, which is no group, got 'the end'"),
        ("enum Row { A = 0; }", "x = {}", "expected a message, got none"),
        (b"\x0a\x03\xff\xff\xff{", "x = {}", "neither UTF-8 nor a descriptor set"),
    ],
)  # fmt: skip
def test_mistakes_of_schema_and_columns_are_reported_at_load(job: Any, schema: Any, columns: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        job(schema, columns)
    assert message in str(caught.value), caught.value
    (mistake,) = caught.value.mistakes
    assert "job.toml:" in mistake.where


@over(
    ("schema", "text", "message"),
    [
        (ODD, 'schema = "flihgt.avsc"', 'job.toml:6: records.schema: expected a file with an Avro schema, or its text, '
         'got "flihgt.avsc": No such file or directory'),
        (ODD, "# none", "records.schema: missing, expected a file with an Avro schema, or its text"),
        (ODD, "schema = '{'", "no JSON"),
        (MESSAGE, 'schema = "flight.proto"\nmessage = "Rwo"', "records.message: expected a message of the schema, such "
         """as Row; did you mean 'Row'?, got \"Rwo\""""),
    ],
)  # fmt: skip
def test_a_schema_or_a_message_that_is_not_there_is_a_mistake(job: Any, schema: Any, text: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        job(schema, "x = {}", text)
    assert message in str(caught.value), caught.value


COLOUR: dict[str, Any] = {"type": "enum", "name": "Colour", "namespace": "shop", "symbols": ["red", "green"]}
PAINT = record(("colour", "Colour"), ("more", nullable("Colour")), name="Paint", namespace="shop")
BARE = {"type": "fixed", "name": "Hash", "size": 4}


def read(schema: Any, *others: Any) -> Any:
    return json.loads(avro.registry_reading(json.dumps(schema), [json.dumps(other) for other in others]))


def test_an_avro_definition_stands_where_it_is_named_first() -> None:
    row = record(("a", "shop.Colour"), ("b", nullable("shop.Paint")), ("c", "Hash"), ("d", "Hash"), namespace="air")
    inlined = record(
        ("a", COLOUR), ("b", nullable(PAINT)), ("c", {**BARE, "namespace": ""}), ("d", "Hash"), namespace="air",
    )  # fmt: skip
    schema = read(row, COLOUR, PAINT, BARE)
    assert schema == json.loads(canonical(json.dumps(inlined)))
    again = canonical(json.dumps(schema))
    assert json.loads(again) == schema and set(rows_of(again).named) == {"air.Row", "shop.Colour", "shop.Paint", "Hash"}


def test_an_avro_type_within_another_is_known_by_its_own_name() -> None:
    """Whichever comes first: the definition stands there once, and its name afterwards."""
    outer = record(("colour", COLOUR), name="Outer", namespace="shop")
    first = read(record(("a", "shop.Outer"), ("b", "shop.Colour")), outer)
    assert first["fields"][1]["type"] == "shop.Colour"
    inner = read(record(("b", "shop.Colour"), ("a", "shop.Outer")), outer)
    assert inner["fields"][0]["type"]["name"] == "shop.Colour"
    assert inner["fields"][1]["type"]["fields"][0]["type"] == "shop.Colour"


@over(
    ("schema", "others", "problem"),
    [
        (record(("a", "shop.Colour")), [PAINT], "got \"shop.Colour\", which nothing before it defines"),
        (record(("a", "Wide")), [{"type": "fixed", "name": "Wide"}], "expected the size of Wide"),
        (record(("a", COLOUR), ("b", {**COLOUR, "symbols": ["blue"]})), [COLOUR], "shop.Colour is defined twice"),
    ],
)  # fmt: skip
def test_an_avro_reference_that_is_none(schema: Any, others: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read(schema, *others)


COLOUR_PROTO = 'syntax = "proto3"; package shop; enum Colour { red = 0; green = 1; } message Not { int32 a = 1; }'
PAINT_PROTO = 'syntax = "proto3"; package shop; import "c.proto"; message Paint { Colour colour = 1; }'
ROW_PROTO = ('syntax = "proto3"; package shop.air; import "p.proto"; import "c.proto"; '
             "message Row { Colour colour = 1; shop.Paint paint = 2; double x = 3; }")  # fmt: skip


def described(text: str, name: str, *fields: tuple[Any, ...]) -> str:
    """A file as Confluent's Python serializer registers it: its descriptor, in base64."""
    file = File("row.proto", text)
    file.add(name, *fields)
    for each in file.proto.message_type[0].field:
        if each.type_name == ".shop.Colour":
            each.type = descriptor_pb2.FieldDescriptorProto.TYPE_ENUM
    return base64.b64encode(file.proto.SerializeToString()).decode()


@over(
    "row",
    [
        ROW_PROTO,
        described("shop.air", "Row", ("colour", 1, ".shop.Colour"), ("paint", 2, ".shop.Paint"), ("x", 3, "double")),
    ],
    ids=["text", "descriptor"],
)
def test_protobuf_files_that_are_imported_are_no_part_of_the_schema(row: str) -> None:
    known = messages_of(protobuf.registry_reading(row, [COLOUR_PROTO, PAINT_PROTO]))
    places = {name: message.index for name, message in known.by_name.items()}
    assert places == {"shop.air.Row": (0,), "shop.Paint": None}
    fields = known.named("").fields
    assert [(each.type, each.of) for each in fields.values()] == [
        ("enum", "shop.Colour"), ("message", "shop.Paint"), ("double", ""),
    ]  # fmt: skip
    assert known.enums == {"shop.Colour": {0: "red", 1: "green"}}


def test_a_protobuf_import_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"shop.air.Row.paint: its type 'shop.Paint' is nowhere defined"):
        protobuf.registry_reading(ROW_PROTO, [COLOUR_PROTO])
