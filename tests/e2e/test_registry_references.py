"""Schemas of a real registry that refer to others there, in training and afterwards without it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from avro_schemas import nullable, record, written
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from registry_front import RegistryFront

from streamtrain.columns.formats._protobuf_wire import sized
from streamtrain.schemas import SchemaRegistry
from tests.e2e.harness import LiveJob, rows

COLOURS = ["red", "green", "blue"]
COLOUR = {"type": "enum", "name": "Colour", "namespace": "shop", "symbols": COLOURS}
PAINT = record(("colour", "Colour"), name="Paint", namespace="shop")
FIELDS: dict[str, Any] = {**{f"x{i}": "double" for i in range(1, 5)}, "colour": COLOUR, "y": nullable("int")}
WHOLE = record(*FIELDS.items(), ("paint", nullable(PAINT)))
REFERRING = record(*{**FIELDS, "colour": "shop.Colour"}.items(), ("paint", nullable("shop.Paint")))
NUMBERS = " ".join(f"double x{i} = {i};" for i in range(1, 5))
PROTO = 'syntax = "proto3"; package shop; '
FILES = {
    "colour.proto": PROTO + "enum Colour { red = 0; green = 1; blue = 2; }",
    "paint.proto": PROTO + 'import "colour.proto"; message Paint { Colour colour = 1; }',
    "row.proto": PROTO + f'import "paint.proto"; import "colour.proto"; message Row {{ {NUMBERS} Colour colour = 5; '
    "optional int32 y = 6; Paint paint = 7; }",
}
ONE_FILE = PROTO + ("enum Colour { red = 0; green = 1; blue = 2; } "
                    f"message Row {{ {NUMBERS} Colour colour = 5; optional int32 y = 6; }}")  # fmt: skip


def avro_records(client: SchemaRegistryClient, subject: str) -> tuple[int, list[bytes]]:
    colour = SchemaReference("shop.Colour", f"{subject}-colour", 1)
    paint = SchemaReference("shop.Paint", f"{subject}-paint", 1)
    client.register_schema(colour.subject, Schema(json.dumps(COLOUR), "AVRO"))
    client.register_schema(paint.subject, Schema(json.dumps(PAINT), "AVRO", [colour]))
    number = int(client.register_schema(subject, Schema(json.dumps(REFERRING), "AVRO", [paint, colour])))
    data = [written(WHOLE, {**row, "paint": {"colour": row["colour"]}}) for row in rows(300)]
    return number, data


def proto_records(client: SchemaRegistryClient, subject: str) -> tuple[int, list[bytes]]:
    colour = SchemaReference("colour.proto", f"{subject}-colour", 1)
    paint = SchemaReference("paint.proto", f"{subject}-paint", 1)
    client.register_schema(colour.subject, Schema(FILES["colour.proto"], "PROTOBUF"))
    client.register_schema(paint.subject, Schema(FILES["paint.proto"], "PROTOBUF", [colour]))
    number = int(client.register_schema(subject, Schema(FILES["row.proto"], "PROTOBUF", [paint, colour])))
    return number, [b"\0" + proto_row(row) for row in rows(300)]  # the first message of the file


def proto_row(row: dict[str, Any]) -> bytes:
    made = b"".join(bytes([i << 3 | 1]) + struct.pack("<d", row[f"x{i}"]) for i in range(1, 5))
    colour = bytes([COLOURS.index(row["colour"])])
    return made + bytes([5 << 3]) + colour + bytes([6 << 3, row["y"]]) + sized(7, bytes([1 << 3]) + colour)


AVRO = avro_records, 'avro"\nschema = "row.avsc', "row.avsc", json.dumps(WHOLE)
PROTOBUF = proto_records, 'protobuf"\nschema = "row.proto', "row.proto", ONE_FILE


@pytest.mark.parametrize("written_by", [AVRO, PROTOBUF], ids=["avsc", "proto"])
def test_writers_whose_schemas_refer_to_others(kafka: Any, registry: Any, tmp_path: Path, written_by: Any) -> None:
    front = RegistryFront(registry.url)
    write, format, file, text = written_by
    (tmp_path / file).write_text(text)
    job = LiveJob(kafka, tmp_path, batch_rows=16, partitions=1, workers=1, format=format,
                  max_dead_letter_share=f'0.9\n[registry]\nurl = "{front.url}"')  # fmt: skip
    number, data = write(SchemaRegistryClient({"url": registry.url}), f"{job.records}-value")
    job.produce_values(b"\0" + struct.pack(">I", number) + each for each in data)
    assert job.train("--until-end")[-1]["rows"] == 300
    front.mode = "away"
    front.asked.clear()
    assert job.verified()["rows"] == {"trained": 300, "dead_lettered": 0, "filtered": 0}
    job.replayed()
    assert not front.asked
    front.close()


def test_what_a_schema_refers_to_is_waited_for(registry: Any) -> None:
    front = RegistryFront(registry.url)
    number, _ = avro_records(SchemaRegistryClient({"url": registry.url}), f"waits-{id(front)}")
    front.away = {"subjects"}
    ours = SchemaRegistry({"url": front.url}, "waits", "avro")
    assert ours.ask(str(number)) is None
    front.away = set()
    text, why_not = ours.wait(str(number))
    assert not why_not and "shop.Paint" in text
    front.close()
