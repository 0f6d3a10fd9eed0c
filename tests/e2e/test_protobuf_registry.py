"""Protobuf through Kafka: by a schema beside the job file, and framed, by schemas that a real registry holds."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from proto_schemas import File
from registry_front import RegistryFront

from streamtrain import LiveModel, RecordWriter, read_predictions
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.columns.formats._protobuf_wire import sized
from streamtrain.job import Job
from tests.e2e.harness import LiveJob, rows

FIELDS = " ".join(f"double x{i} = {i};" for i in range(1, 5))
FLIGHT = f'syntax = "proto3"; package air; message Flight {{ {FIELDS} string colour = 5; optional int32 y = 6; }}'
NEWER = FLIGHT.replace("string colour", "Colour colour").replace("double x1", "float one").replace(
    "6; }", "6; repeated int64 note = 9 [packed = true]; } enum Colour { red = 0; green = 1; blue = 2; }")  # fmt: skip
OTHER = FLIGHT.replace("double x2", "string x2")
COLOURS = ["red", "green", "blue"]


def flights() -> Any:
    """Google's own class of the message, and what it would have written the .proto from."""
    file = File("flight.proto", "air")
    file.add("Flight", *((f"x{i}", i, "double") for i in range(1, 5)), ("colour", 5, "string"),
             ("y", 6, "int32", "optional"))  # fmt: skip
    return file.message("air.Flight")


def newer(row: dict[str, Any]) -> bytes:
    made = b"\x0d" + struct.pack("<f", row["x1"])
    made += b"".join(bytes([i << 3 | 1]) + struct.pack("<d", row[f"x{i}"]) for i in range(2, 5))
    colour = COLOURS.index(row["colour"])
    made += bytes([5 << 3, colour]) if colour else b""
    return made + bytes([6 << 3, row["y"]]) + sized(9, b"\1\2\3")


def proto_job(kafka: Any, folder: Path, url: str = "", text: str = FLIGHT, **settings: Any) -> LiveJob:
    (folder / "flight.proto").write_text(text)
    registry = f'\n[registry]\nurl = "{url}"' if url else ""
    named = {"format": 'protobuf"\nschema = "flight.proto', "max_dead_letter_share": f"0.9{registry}"}
    return LiveJob(kafka, folder, **{"batch_rows": 16, **named, **settings})


@pytest.fixture
def client(registry: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def registered(client: SchemaRegistryClient, subject: str, text: str, kind: str = "PROTOBUF") -> int:
    return int(client.register_schema(subject, Schema(text, kind)))


@pytest.mark.parametrize("many", [False, True])
def test_a_schema_beside_the_job_file(kafka: Any, tmp_path: Path, many: bool) -> None:
    text = FLIGHT.replace("message Flight", "message Flights { repeated Flight rows = 1; } message Flight")
    job = proto_job(kafka, tmp_path, text=text if many else FLIGHT)
    with RecordWriter(job.job) as writer:
        assert writer.write(list(rows(1000))) == 1000
    assert job.train("--until-end")[-1]["rows"] == 1000
    (tmp_path / "flight.proto").unlink()  # what reads has the text
    job.path.write_text(job.path.read_text().replace('"flight.proto"', f"'''{text if many else FLIGHT}'''"))
    assert job.verified()["rows"] == {"trained": 1000, "dead_lettered": 0, "filtered": 0}
    job.replayed()
    asked = [{name: row[name] for name in row if name != "y"} for row in rows(3)]
    with RecordWriter(Job.load(job.path), to="requests") as writer:
        writer.write(asked)
    assert job.command("predict", "--until-end").returncode == 0
    answers = list(read_predictions(job.name, bootstrap=job.bootstrap, until_end=True))
    told = [answer.prediction for answer in answers]
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(30)
        expected = [model.predict(row) for row in asked]
    flat = [each for one in told for each in (one if isinstance(one, list) else [one])]
    assert sorted(map(repr, flat)) == sorted(map(repr, expected))


def test_writers_of_several_schemas(kafka: Any, registry: Any, client: SchemaRegistryClient, tmp_path: Path) -> None:
    """Afterwards nobody asks the registry any more: what was read by which schema is in the round log."""
    front = RegistryFront(registry.url)
    job = proto_job(kafka, tmp_path, front.url)
    subject = f"{job.records}-value"
    flight = flights()
    serialize = ProtobufSerializer(flight, client, {"use.deprecated.format": False})  # Confluent's own
    context = SerializationContext(job.records, MessageField.VALUE)
    first = [serialize(flight(**row), context) for row in rows(400)]
    number = registered(client, f"{subject}-newer", NEWER)
    second = [b"\0" + struct.pack(">I", number) + b"\0" + newer(row) for row in rows(400, seed=1)]
    other = registered(client, f"{subject}-other", OTHER)
    avro = registered(client, f"{subject}-avro", json.dumps("string"), "AVRO")
    frames = [struct.pack(">I", schema_id) + b"\0" for schema_id in (other, avro, 0x7FFFFF)]
    bad = [b"\0" + frame + newer(row) for frame in frames for row in rows(5)]
    job.produce_values([each for pair in zip(first, second, strict=True) for each in pair])
    job.produce_values(bad)
    assert job.train("--until-end")[-1]["rows"] == 800
    front.mode = "away"
    front.asked.clear()
    assert job.verified()["rows"] == {"trained": 800, "dead_lettered": 15, "filtered": 0}
    job.replayed()
    assert not front.asked
    front.mode = "through"
    told = {(part.path, part.reason) for found in read_dead_letters(Job.load(job.path)) for part in found.letter.rows}
    newest = client.get_latest_version(subject).schema_id
    assert told == {
        ("$.x2", f"schema {other}: expected a double, got a string"),
        ("$", f"schema {avro}: expected a schema of type PROTOBUF, got AVRO; the newest of {subject} is {newest}"),
        ("$", f"schema {0x7fffff}: the registry knows no such schema; the newest of {subject} is {newest}"),
    }
    direct = Job.load(job.path, environment={"STREAMTRAIN_REGISTRY__URL": registry.url})
    with RecordWriter(direct, to="requests") as writer:  # registers the job's schema for the topic
        writer.write({**next(rows(1)), "y": None})
    assert job.command("predict", "--until-end").returncode == 0
    assert [answer.error for answer in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)] == [None]
    shown = job.command("read", "records", "--until-end", "--json", "--limit", "1")
    assert "x1" in json.loads(shown.stdout.splitlines()[0])["rows"][0], shown.stdout
    front.close()
