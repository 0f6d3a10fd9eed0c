"""Records that name their schema in a registry: schemas, rows under them, and what stands before the registry."""

from __future__ import annotations

import json
import struct
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from avro_schemas import nullable, record, written
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from proto_schemas import File
from registry_front import RegistryFront
from waiting import wait_for

from streamtrain.columns.formats._protobuf_wire import sized
from tests.e2e.harness import LiveJob

HEADER = "__value_schema_id"
UNKNOWN = uuid.UUID("00000000-0000-4000-8000-000000000001")
UNKNOWN_ID = 0x7FFFFF
TRACE = ("trace", b"t")
COLOURS = ["red", "green", "blue"]

FIELDS: dict[str, Any] = {**{f"x{i}": "double" for i in range(1, 5)}, "colour": "string", "y": nullable("int")}
ROW = record(*FIELDS.items())
NEWER = record(("when", "long"), *{**FIELDS, "x1": "float", "colour": nullable("string")}.items(), ("note", "string"))
OTHER = record(*{**FIELDS, "x2": "string"}.items())
COLOUR = {"type": "enum", "name": "Colour", "namespace": "shop", "symbols": COLOURS}
PAINT = record(("colour", "Colour"), name="Paint", namespace="shop")
WHOLE = record(*{**FIELDS, "colour": COLOUR}.items(), ("paint", nullable(PAINT)))
REFERRING = record(*{**FIELDS, "colour": "shop.Colour"}.items(), ("paint", nullable("shop.Paint")))

NUMBERS = " ".join(f"double x{i} = {i};" for i in range(1, 5))
FLIGHT = f'syntax = "proto3"; package air; message Flight {{ {NUMBERS} string colour = 5; optional int32 y = 6; }}'
NEWER_FLIGHT = FLIGHT.replace("string colour", "Colour colour").replace("double x1", "float one").replace(
    "6; }", "6; repeated int64 note = 9 [packed = true]; } enum Colour { red = 0; green = 1; blue = 2; }")  # fmt: skip
OTHER_FLIGHT = FLIGHT.replace("double x2", "string x2")
AIR = 'syntax = "proto3"; package air; '
COLOUR_FILE = AIR + "enum Colour { red = 0; green = 1; blue = 2; }"
PAINT_FILE = AIR + 'import "colour.proto"; message Paint { Colour colour = 1; }'
REFERRING_FILE = (AIR + f'import "paint.proto"; import "colour.proto"; message Flight {{ {NUMBERS} Colour colour = 5; '
                  "optional int32 y = 6; Paint paint = 7; }")  # fmt: skip

USER = {"type": "object", "properties": {"numbers": {"type": "array"}}}
OUTCOME = {"type": "object", "properties": {"y": {"type": "integer"}}}
JSON_ROW = {"title": "Row", "type": "object", "properties": {"user": USER, "outcome": OUTCOME}}


def framed(number: int, datum: bytes) -> bytes:
    return b"\0" + struct.pack(">I", number) + datum


def registered(client: SchemaRegistryClient, subject: str, schema: Any, *references: SchemaReference) -> int:
    """The id of an Avro schema, or of a .proto's text."""
    text, kind = (schema, "PROTOBUF") if isinstance(schema, str) else (json.dumps(schema), "AVRO")
    return int(client.register_schema(subject, Schema(text, kind, list(references))))


def referring(client: SchemaRegistryClient, subject: str, kind: str) -> int:
    """The id of a schema that refers to two, one of which refers to the other."""
    of_kind = {"avro": ("shop.Colour", COLOUR, "shop.Paint", PAINT, REFERRING),
               "protobuf": ("colour.proto", COLOUR_FILE, "paint.proto", PAINT_FILE, REFERRING_FILE)}  # fmt: skip
    first, first_schema, second, second_schema, schema = of_kind[kind]
    colour = SchemaReference(first, f"{subject}-{first}", 1)
    paint = SchemaReference(second, f"{subject}-{second}", 1)
    registered(client, colour.subject, first_schema)
    registered(client, paint.subject, second_schema, colour)
    return registered(client, f"{subject}-referring", schema, paint, colour)


def numbers_of(row: dict[str, Any], begin: int = 1) -> bytes:
    return b"".join(bytes([i << 3 | 1]) + struct.pack("<d", row[f"x{i}"]) for i in range(begin, 5))


def newer_flight(row: dict[str, Any]) -> bytes:
    colour = COLOURS.index(row["colour"])
    made = b"\x0d" + struct.pack("<f", row["x1"]) + numbers_of(row, 2) + (bytes([5 << 3, colour]) if colour else b"")
    return b"\0" + made + bytes([6 << 3, row["y"]]) + sized(9, b"\1\2\3")  # the first message of the file


def painted(kind: str, row: dict[str, Any]) -> bytes:
    """A row by the schema that refers to others."""
    if kind == "avro":
        return written(WHOLE, {**row, "paint": {"colour": row["colour"]}})
    colour = bytes([COLOURS.index(row["colour"])])
    made = numbers_of(row) + bytes([5 << 3]) + colour + bytes([6 << 3, row["y"]])
    return b"\0" + made + sized(7, bytes([1 << 3]) + colour)


@cache
def flights() -> Any:
    """Google's own class of the message, and what it would have written the .proto from."""
    file = File("flight.proto", "air")
    file.add("Flight", *((f"x{i}", i, "double") for i in range(1, 5)), ("colour", 5, "string"),
             ("y", 6, "int32", "optional"))  # fmt: skip
    return file.message("air.Flight")


SERIALIZERS: dict[str, Callable[[SchemaRegistryClient, dict[str, Any]], Any]] = {
    "avro": lambda client, conf: AvroSerializer(client, json.dumps(ROW), conf=conf),
    "json": lambda client, conf: JSONSerializer(json.dumps(JSON_ROW), client, conf=conf),
    "protobuf": lambda client, conf: ProtobufSerializer(flights(), client, {"use.deprecated.format": False, **conf}),
}


@cache
def _serializer(kind: str, url: str, headers: bool) -> Any:
    conf = {"schema.id.serializer": header_schema_id_serializer} if headers else {}
    return SERIALIZERS[kind](SchemaRegistryClient({"url": url}), conf)


def serialized(kind: str, front: RegistryFront, topic: str, given: Sequence[Any], headers: bool) -> Iterator[Any]:
    """Messages with rows as Confluent's own serializers write them, with the schema's GUID in a header or its id."""
    serialize = _serializer(kind, front.url, headers)
    for row in given:
        told: list[tuple[str, bytes | None]] = [TRACE]
        datum = {"avro": lambda row: {"y": None, **row}, "protobuf": lambda row: flights()(**row)}.get(kind, dict)(row)
        yield {"value": serialize(datum, SerializationContext(topic, MessageField.VALUE, told)), "headers": told}


def registry_job(kafka: Any, folder: Path, url: str, kind: str = "avro", schema: Any = ROW, **settings: Any) -> LiveJob:
    """A job whose schema is a file; of the newest in the registry where `schema` is None."""
    text = schema if isinstance(schema, str) else json.dumps(schema, indent=2)
    (folder / "row.schema").write_text(text)
    named = {"format": f'{kind}"\nschema = "row.schema' if schema is not None else kind,
             "max_dead_letter_share": f'0.9\n[registry]\nurl = "{url}"'}  # fmt: skip
    return LiveJob(kafka, folder, **{"batch_rows": 16, **named, **settings})


def answers_later(front: RegistryFront) -> None:
    """It is away until it has been asked."""
    front.mode = 503
    front.asked.clear()

    def come_back() -> None:
        wait_for(lambda: front.asked)
        front.mode = "through"

    threading.Thread(target=come_back, daemon=True).start()
