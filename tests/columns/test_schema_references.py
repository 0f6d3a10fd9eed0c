"""Schemas that refer to others: read as if each definition stood where it is named first."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from avro_schemas import nullable, record
from google.protobuf import descriptor_pb2
from looped import over
from proto_schemas import File

from streamtrain.columns.formats import avro, protobuf
from streamtrain.columns.formats.avro_schema import canonical, rows_of
from streamtrain.columns.formats.protobuf_schema import messages_of

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
    made = read(row, COLOUR, PAINT, BARE)
    assert made == json.loads(canonical(json.dumps(inlined)))
    again = canonical(json.dumps(made))
    assert json.loads(again) == made and set(rows_of(again).named) == {"air.Row", "shop.Colour", "shop.Paint", "Hash"}


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
