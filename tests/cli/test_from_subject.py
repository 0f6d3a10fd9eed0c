"""`init --from-subject`: a job by a registry's schema alone, and by the rows of its topic once there are some."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from avro_schemas import logical, nullable, record, written
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from sending import send

from streamtrain import Job
from streamtrain.cli.commands.init import _guessed
from streamtrain.cli.first_job.schema_fields import fields_of
from streamtrain.columns.formats.avro_schema import LOGICAL, PRIMITIVES, canonical
from streamtrain.columns.formats.protobuf_schema import canonical as proto_canonical
from streamtrain.job.registry_settings import RegistrySettings
from tests.cli.conftest import Run

KIND = {"type": "enum", "name": "Kind", "symbols": ["card", "cash", "gift"]}
AVRO = record(
    ("amount", nullable("double")), ("items", "int"), ("user_id", "long"), ("city", nullable("string")),
    ("kind", KIND), ("ts", logical("long", "timestamp-micros")), ("flag", "boolean"),
    ("geo", record(("lat", "double"), ("name", nullable("string")), name="Geo")),
    ("tags", {"type": "array", "items": "string"}),
    ("uuid", nullable(logical("string", "uuid"))), ("raw", nullable("bytes")),
    ("start", logical("long", "timestamp-millis")), ("fraud", "boolean"),
)  # fmt: skip
NUMBER, TEXT = {"type": "number"}, {"type": ["null", "string"]}
JSON = {
    "type": "object", "required": ["items", "user_id", "kind", "ts", "flag", "geo", "tags", "fraud"],
    "$defs": {"geo": {"type": "object", "properties": {"lat": NUMBER, "name": TEXT}, "required": ["lat", "name"]}},
    "properties": {
        "amount": {"oneOf": [{"type": "null"}, NUMBER]}, "items": {"type": "integer"}, "user_id": {"type": "integer"},
        "city": TEXT, "kind": {"enum": KIND["symbols"]}, "ts": {"type": "string", "format": "date-time"},
        "flag": {"type": "boolean"}, "geo": {"$ref": "#/$defs/geo"},
        "tags": {"type": "array", "items": {"type": "string"}}, "uuid": {"type": "string", "format": "uuid"},
        "raw": {}, "fraud": {"type": "boolean"},
    },
}  # fmt: skip
PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message Row {
  enum Kind { card = 0; cash = 1; gift = 2; } message Geo { double lat = 1; optional string name = 2; }
  optional double amount = 1; int32 items = 2; int64 user_id = 3; optional string city = 4; Kind kind = 5;
  google.protobuf.Timestamp ts = 6; bool flag = 7; Geo geo = 8; repeated string tags = 9; string uuid = 10;
  bytes raw = 11; bool fraud = 12;
}"""
SCHEMAS = {"AVRO": json.dumps(AVRO), "JSON": json.dumps(JSON), "PROTOBUF": PROTO}
COLUMNS = {
    "amount": "number", "items": "number", "user_id": "category", "city": "category", "kind": "category",
    "ts": "event_time", "flag": "category", "geo_lat": "number", "geo_name": "category", "tags": "category",
    "fraud": "label",
}  # fmt: skip


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_subject_makes_a_job_without_rows_and_with_them(
    run: Run, kafka: Any, registry: Any, tmp_path: Path, kind: str
) -> None:
    """Only this finds a column that the schema cannot give, or rows of a registry's frame that init does not read."""
    topic, path, draw = kafka.fresh_name("orders"), tmp_path / f"{kafka.fresh_name('init')}.toml", random.Random(3)
    number = SchemaRegistryClient({"url": registry.url}).register_schema(f"{topic}-value", Schema(SCHEMAS[kind], kind))
    given = ["--from-subject", f"{topic}-value", "--label", "fraud", "-b", kafka.bootstrap, "--set"]
    ended = run("init", path, *given, f"registry.url={registry.url}", "--json")
    assert ended.code == 0, ended.err
    found = {name: column.kind or column.role for name, column in Job.load(path).schema.columns}
    assert found == COLUMNS and ended.document["rows_read"] == 0, ended.document
    columns = ended.document["columns"]
    assert "not known" in columns["city"]["reason"] and "buckets" in columns["city"]["other"]
    assert columns["raw"]["kind"] == columns["uuid"]["kind"] == "left out" and "without a row" in path.read_text()

    assert run("topics", "create", path).code == 0
    rows = [{"amount": draw.choice([None, at / 7]), "items": draw.randint(0, 9), "user_id": draw.randint(1, 30),
             "city": draw.choice(["Rome", "Oslo"]), "kind": draw.choice(KIND["symbols"]), "flag": at % 3 == 0,
             "ts": 10**15 + at if kind == "AVRO" else f"2024-05-01T00:{at // 60:02}:{at % 60:02}Z",
             "geo": {"lat": draw.random(), "name": draw.choice("ab")},
             "tags": draw.choices("xyz", k=2), **({"start": draw.randint(0, 10**6)} if kind == "AVRO" else {}),
             "fraud": at % 2 == 0} for at in range(600)]  # fmt: skip
    if kind != "PROTOBUF":
        data = (written(AVRO, row) if kind == "AVRO" else json.dumps(row).encode() for row in rows)
        send(kafka.bootstrap, topic, (b"\0" + number.to_bytes(4, "big") + datum for datum in data))
    else:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        ended = run("produce", path, "--input", tmp_path / "rows.jsonl")
        assert ended.code == 0, ended.err
    ended = run("init", path, "--force", *given, f"registry.url={registry.url}", "--json")
    assert ended.code == 0 and ended.document["rows_read"] == 600, ended
    found = {name: column.kind or column.role for name, column in Job.load(path).schema.columns}
    assert found == COLUMNS and "2 values" in ended.document["columns"]["city"]["reason"], found
    ended = run("check", path, "--json")
    texts = [each["text"] for each in ended.document["findings"] if each["what"] == "records"]
    assert texts == ["600 records: 600 trained"], ended.document


def test_what_a_subject_cannot_give_is_an_error_with_a_remedy(run: Run, registry: Any, tmp_path: Path) -> None:
    SchemaRegistryClient({"url": registry.url}).register_schema("words-value", Schema(SCHEMAS["JSON"], "JSON"))
    for subject, label, sets, error in (
        ("orders", "fraud", [f"registry.url={registry.url}"], "expected TOPIC-value"),
        ("nobodys-value", "fraud", [f"registry.url={registry.url}"], "found none of this name"),
        ("words-value", "fraud", [], "registry.url=URL"),
    ):
        given = [part for each in sets for part in ("--set", each)]
        ended = run("init", tmp_path / "job.toml", "--from-subject", subject, "--label", label, *given)
        assert ended.code == 2 and error in ended.err, (subject, ended.err)


@pytest.mark.parametrize("seed", range(8))
def test_every_guess_by_a_schema_is_a_job_that_its_schema_can_give(seed: int, tmp_path: Path) -> None:
    """Only this finds types of Avro whose guess the decoder refuses: days, durations, decimals, maps, unions."""
    draw = random.Random(seed)
    logicals = [logical(of, name, **({"precision": 9, "scale": 2} if name == "decimal" else {}))
                for name, kinds in LOGICAL.items() for of in kinds if of != "fixed"]  # fmt: skip
    plain = [*PRIMITIVES[1:], *logicals]
    deep = [*plain, {"type": "array", "items": draw.choice(plain)}, {"type": "map", "values": draw.choice(plain)},
            ["int", "string"], ["null", draw.choice(plain)]]  # fmt: skip
    names = ["ts", "id", "user_id", "when", "price", "a b", "x{1}", "y-z", *(f"f{at}" for at in range(12))]
    inner = record(*((name, draw.choice(deep)) for name in [*names[:8], "f0"]), name="Inner")
    schema = canonical(json.dumps(record(
        *((name, draw.choice(deep)) for name in names), ("number", "double"), ("inner_f0", "int"), ("inner", inner),
        ("y", "boolean"))))  # fmt: skip
    source = source_of(schema)
    found, job, _ = _guessed(source, ["y"], tmp_path / "job.toml", "localhost:9092")
    assert sorted(each.name for each in found.decisions) == sorted({each.name for each in source.fields})
    assert "number" in job.schema.numbers and job.with_schema(schema)


def test_a_schema_of_change_events_gives_the_row_after_the_change(tmp_path: Path) -> None:
    """Only this finds the row before a change among the features, and deletes that are trained."""
    price = logical("bytes", "decimal", precision=10, scale=2)
    at = record(("x", "double"), name="At")
    value = record(("op", "string"), ("price", price), ("at", at), ("y", "boolean"), name="V")
    envelope = record(("before", nullable(value)), ("after", nullable("V")), ("op", "string"), ("ts_ms", "long"),
                      ("source", record(("db", "string"), name="Source")))  # fmt: skip
    for above, schema in (("", envelope), ("payload.", record(("payload", {**envelope, "name": "E"}), name="Top"))):
        text = canonical(json.dumps(schema))
        _, job, _ = _guessed(source_of(text), [f"{above}after.y"], tmp_path / "job.toml", "localhost:9092")
        assert {name: (column.kind or column.role, column.path) for name, column in job.schema.columns} == {
            "op_": ("category", f"{above}op"), "op": ("category", f"{above}after.op"),
            "price": ("number", f"{above}after.price"), "at_x": ("number", f"{above}after.at.x"),
            "y": ("label", f"{above}after.y"),
        }  # fmt: skip
        assert job.records.where == "op_ != 'd' and op_ != 't'"


def source_of(schema: str) -> Any:
    return SimpleNamespace(
        name="subject s-value", rows=[], fields=fields_of("AVRO", schema), schema=schema, format="avro", topic="s",
        partitions=1, registry=RegistrySettings({"url": "http://localhost"}),
    )  # fmt: skip


def test_schemas_that_refer_to_themselves_or_to_anything_end() -> None:
    """Only this finds a walk without an end, or a type that is taken for another."""
    all_ = {"type": "map", "values": "int"}
    tree = record(("x", "int"), ("next", nullable("Row")), ("many", ["int", "string"]), ("all", all_))
    found = fields_of("AVRO", canonical(json.dumps(tree)))
    assert len(found) < 40 and {each.kind for each in found} == {"whole number", "a union of several types", "a map"}
    loop = {"properties": {"x": {"$ref": "#"}, "y": {"$ref": "#/nowhere"}, "z": {"type": ["string", "integer"]},
                           "m": {"type": "object", "additionalProperties": {"type": "number"}}}}  # fmt: skip
    assert {each.kind for each in fields_of("JSON", json.dumps(loop))} == {"a value of any type", "map"}
    proto = 'syntax = "proto3"; message Node { Node next = 1; sint32 x = 2; repeated Node all = 3; }'
    found = fields_of("PROTOBUF", proto_canonical(proto))
    assert {each.kind for each in found} == {"whole number", "list"}

