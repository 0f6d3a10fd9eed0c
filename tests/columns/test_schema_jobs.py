"""A job file's Avro or Protobuf schema: beside it, its message, the columns; mistakes are reported at load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from avro_schemas import logical, nullable, record
from looped import over
from proto_schemas import File

from streamtrain.columns.formats.protobuf_schema import messages_of
from streamtrain.job import Job, JobMistakes

ROW = record(("x", "float"), ("odd", nullable("string")), ("list", {"type": "array", "items": "long"}), ("y", "float"),
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
        (ROW, ROW, f"schema = '''{json.dumps({**ROW, 'doc': 'of a flight'})}'''"),
        (MESSAGE, MESSAGE.replace(" ", "  /* a row */ "), ""),
    ],
)
def test_the_schema_stands_beside_the_job_file_and_its_text_in_the_settings(
    job: Any, schema: Any, again: Any, text: str
) -> None:
    made = job(schema, "x = {}")
    assert made.effective()["records"]["schema"] == made.records.named["schema"]
    assert Job.from_effective(made.effective()).digest() == made.digest() == job(again, "x = {}", text).digest()
    other = {"format": made.records.named["name"], "schema": "flight.avsc"}
    with pytest.raises(JobMistakes, match="no text"):  # what a manifest says reads no file
        Job.from_effective({**made.effective(), "records": other})


def test_the_text_in_the_settings_is_as_short_as_it_may_be(job: Any) -> None:
    text = job(ROW, "x = {}").records.named["schema"]
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
        (ROW, "z = {}", "columns.z: expected a field of the schema's Row, got none named 'z'"),
        (ROW, "lst = {}", "did you mean 'list'?"),
        (ROW, 'x = { path = "user.x" }', "columns.x.path: expected a field of the schema's, within records alone, got"),
        (ROW, "odd = {}", "columns.odd: expected a field of the schema that the column can take, got text (string)"),
        (ROW, "list = {}", "got an array"),
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
def test_mistakes_of_schema_and_columns_are_told_at_load(job: Any, schema: Any, columns: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        job(schema, columns)
    assert message in str(caught.value), caught.value
    (mistake,) = caught.value.mistakes
    assert "job.toml:" in mistake.where


@over(
    ("schema", "text", "message"),
    [
        (ROW, 'schema = "flihgt.avsc"', 'job.toml:6: records.schema: expected a file with an Avro schema, or its text, '
         'got "flihgt.avsc": No such file or directory'),
        (ROW, "# none", "records.schema: missing, expected a file with an Avro schema, or its text"),
        (ROW, "schema = '{'", "no JSON"),
        (MESSAGE, 'schema = "flight.proto"\nmessage = "Rwo"', "records.message: expected a message of the schema, such "
         """as Row; did you mean 'Row'?, got \"Rwo\""""),
    ],
)  # fmt: skip
def test_a_schema_or_a_message_that_is_not_there_is_a_mistake(job: Any, schema: Any, text: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        job(schema, "x = {}", text)
    assert message in str(caught.value), caught.value
