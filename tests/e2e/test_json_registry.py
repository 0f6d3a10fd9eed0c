"""JSON behind a registry's frame: what Confluent's serializer writes, by ids that a real registry knows or does not."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from registry_front import RegistryFront

from streamtrain import RecordWriter, read_predictions
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from tests.e2e.harness import LiveJob, rows

NUMBERS = {f"x{i}": {"type": "number"} for i in range(1, 5)}
ROW = {"title": "Row", "type": "object",
       "properties": {**NUMBERS, "colour": {"type": "string"}, "y": {"type": "integer"}}}  # fmt: skip


def json_job(kafka: Any, folder: Path, url: str, schema: bool = True) -> LiveJob:
    (folder / "row.json").write_text(json.dumps(ROW, indent=2))
    named = 'json"\nschema = "row.json' if schema else "json"
    return LiveJob(kafka, folder, batch_rows=16, format=named, max_dead_letter_share=f'0.9\n[registry]\nurl = "{url}"')


def framed(number: int, row: dict[str, Any]) -> bytes:
    return b"\0" + struct.pack(">I", number) + json.dumps(row).encode()


def test_what_a_serializer_writes(kafka: Any, registry: Any, tmp_path: Path) -> None:
    """Of several schemas; an id that nobody knows, one of another type and no frame are dead letters. An id whose
    registry is away is waited for. Afterwards nobody asks any more."""
    front = RegistryFront(registry.url)
    client = SchemaRegistryClient({"url": registry.url})
    job = json_job(kafka, tmp_path, front.url)
    subject = f"{job.records}-value"
    serialize = JSONSerializer(json.dumps(ROW), client)  # Confluent's own
    context = SerializationContext(job.records, MessageField.VALUE)
    newer = {**ROW, "properties": {**ROW["properties"], "note": {"type": "string"}, "row": {"$ref": "row.json"}}}
    avro = int(client.register_schema(f"{subject}-avro", Schema('"string"', "AVRO")))
    job.produce_values(serialize(row, context) for row in rows(300))
    referring = Schema(json.dumps(newer), "JSON", [SchemaReference("row.json", subject, 1)])
    number = int(client.register_schema(f"{subject}-newer", referring))
    job.produce_values(framed(each, row) for each in (avro, 0x7FFFFF) for row in rows(5))
    job.produce_values([b"\0\0\0", *(json.dumps(row).encode() for row in rows(4))])
    assert job.train("--until-end")[-1]["rows"] == 300
    front.mode = "away"
    job.produce_values(framed(number, {**row, "note": "é"}) for row in rows(200, seed=1))
    running = job.start("train", "--until-end")
    try:
        running.wait_event("progress", waiting_for_schema=True)
        front.mode = "through"
        assert running.finish() == 0 and not any("/versions/1" in path for path in front.asked)  # nor what it refers to
    finally:
        running.process.kill()
    front.mode = "away"
    front.asked.clear()
    assert job.verified()["rows"] == {"trained": 500, "dead_lettered": 15, "filtered": 0}
    job.replayed()
    assert not front.asked
    newest = client.get_latest_version(subject).schema_id
    told = {(part.path, part.reason) for found in read_dead_letters(Job.load(job.path)) for part in found.letter.rows}
    frame = "expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
    assert told == {
        ("$", f"schema {avro}: expected a schema of type JSON, got AVRO; the newest of {subject} is {newest}"),
        ("$", f"schema {0x7fffff}: the registry knows no such schema; the newest of {subject} is {newest}"),
        ("$", f"{frame} 3 bytes"), ("$", f"{frame} byte 123"),
    }  # fmt: skip
    front.mode = "through"
    direct = Job.load(job.path, environment={"STREAMTRAIN_REGISTRY__URL": registry.url})
    with RecordWriter(direct, to="requests") as writer:  # registers the job's schema for the topic
        writer.write([{name: row[name] for name in row if name != "y"} for row in rows(3)])
    assert client.get_latest_version(f"{job.job.topic('requests').name}-value").schema.schema_type == "JSON"
    assert job.command("predict", "--until-end").returncode == 0
    (answer,) = read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)
    assert answer.error is None and len(answer.prediction) == 3
    shown = job.command("read", "records", "--until-end", "--json", "--limit", "1")
    assert "x1" in json.loads(shown.stdout.splitlines()[0])["rows"][0], shown.stdout
    front.close()


def test_framed_records_are_written_under_a_schema(kafka: Any, registry: Any, tmp_path: Path) -> None:
    job = json_job(kafka, tmp_path, registry.url, schema=False)
    with pytest.raises(UserMistake, match=r"records.schema: expected a file with a JSON Schema, .*got none"):
        RecordWriter(job.job)
