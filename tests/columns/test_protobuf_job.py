"""What a job file says of Protobuf: the schema beside it, the message, the columns; mistakes are told at load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from looped import over
from proto_schemas import File

from streamtrain.columns.formats.protobuf_schema import messages_of
from streamtrain.job import Job, JobMistakes

ROW = """message Row { float x = 1; string odd = 2; repeated int64 list = 3 [packed = true]; float y = 4;
  int32 late = 5; }"""


@pytest.fixture
def job(tmp_path: Path) -> Any:
    def load(schema: bytes | str, columns: str, text: str = 'schema = "flight.proto"') -> Job:
        given = schema if isinstance(schema, bytes) else f'syntax = "proto3"; {schema}'.encode()
        (tmp_path / "flight.proto").write_bytes(given)
        path = tmp_path / "job.toml"
        path.write_text(f'name = "a"\n[kafka]\nbootstrap.servers = "x:1"\n[records]\nformat = "protobuf"\n{text}\n'
                        f"[columns]\n{columns}\nlate = {{ role = \"label\" }}\n")  # fmt: skip
        return Job.load(path)

    return load


def test_the_schema_stands_beside_the_job_file_and_its_text_in_the_settings(job: Any) -> None:
    made = job(ROW, "x = {}")
    named = made.records.named
    assert messages_of(named["schema"]).named("").name == "Row"
    assert Job.from_effective(made.effective()).digest() == made.digest()
    spaced = job(ROW.replace(" ", "  /* a row */ "), "x = {}")
    assert spaced.digest() == made.digest()
    file = File("air.proto", "air").importing()
    file.add("Row", ("x", 1, "float"), ("late", 2, "bool"), ("at", 3, ".google.protobuf.Timestamp"))
    file.add("Other", ("z", 1, "float"), ("late", 2, "bool"), ("d", 3, ".google.protobuf.DoubleValue"))
    of_set = job(file.set_bytes(), "x = {}")
    assert messages_of(of_set.records.named["schema"]).named("").name == "air.Row"
    other = job(file.set_bytes(), 'z = {}\nv = { path = "d.value" }', 'schema = "flight.proto"\nmessage = "air.Other"')
    assert other.records.named["message"] == "air.Other"
    with pytest.raises(JobMistakes, match="no text"):  # what a manifest says reads no file
        Job.from_effective({**made.effective(), "records": {"format": "protobuf", "schema": "flight.proto"}})


@over(
    ("schema", "columns", "message"),
    [
        (ROW, "z = {}", "columns.z: expected a field of the schema's Row, got none named 'z'"),
        (ROW, "lst = {}", "did you mean 'list'?"),
        (ROW, "list = {}", "expected a field of the schema that the column can take, got many values"),
        (ROW, "odd = {}", "got text (string)"),
        (ROW, 'odd = { kind = "category", list = true, buckets = 9 }', "got no list (string)"),
        (ROW.replace("int64 list", "string list"), 'list = { kind = "vector", size = 2 }', "got many of text (string)"),
        (ROW.replace("int64 list", "bytes list"), 'list = { kind = "category", list = true, buckets = 9 }',
         "got many of bytes"),
        (ROW, 'x = { path = "user.x" }', "columns.x.path: expected a field of the schema's, within messages"),
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


def test_a_message_that_is_not_there_is_a_mistake(job: Any) -> None:
    told = r"records.message: expected a message of the schema, such as Row; did you mean 'Row'\?, got \"Rwo\""
    with pytest.raises(JobMistakes, match=told):
        job(ROW, "x = {}", 'schema = "flight.proto"\nmessage = "Rwo"')
