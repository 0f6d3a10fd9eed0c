"""Writers' schemas that differ from the job's: what is absorbed, what is refused, and in what words."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from avro_schemas import logical, nullable, record, written
from looped import over
from slots import Tally, decode_rows

from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.columns.schema import Schema
from tests.columns.conftest import spoiled

COLUMNS = {
    "x": {}, "y": {"missing": -1}, "carrier": {"kind": "category", "buckets": 1000, "missing": "none"},
    "when": {"role": "event_time", "missing": 0}, "late": {"role": "label"},
}  # fmt: skip
JOB = Schema.from_columns(COLUMNS, "binary_cross_entropy")
MILLIS = logical("long", "timestamp-millis")
CENTS = logical("bytes", "decimal", precision=9, scale=2)
SUIT = {"type": "enum", "name": "Suit", "symbols": ["AA", "UA"]}
FIELDS: dict[str, Any] = {"x": "double", "y": nullable("float"), "carrier": "string", "when": MILLIS, "late": "int"}
ROW = {"x": 2.0, "y": 3.0, "carrier": "AA", "when": 5000, "late": 1}


def schema(fields: dict[str, Any]) -> dict[str, Any]:
    return record(*fields.items())


def framed(number: int, writer: Any, row: dict[str, Any]) -> bytes:
    return b"\0" + struct.pack(">I", number) + written(writer, row)


def decoded(
    reader: Any, writers: dict[int, Any], *records: bytes, refused: dict[int, str] | None = None
) -> tuple[list[dict[str, Any]], list[Tally]]:
    """The records through one decoder, each with its rows and tally."""
    answers = {str(n): (canonical(json.dumps(writer)), "") for n, writer in writers.items()}
    answers |= {str(n): ("", why) for n, why in (refused or {}).items()}
    format = {"name": "avro", "schema": canonical(json.dumps(reader)), "frame": "registry", "schemas": answers.get}
    found = [decode_rows(format, JOB, each) for each in records]
    return [blocks for blocks, _ in found], [tally for _, tally in found]


def alias(fields: dict[str, Any], name: str, *aliases: str, **more: Any) -> dict[str, Any]:
    made = schema(fields)
    for field in made["fields"]:
        if field["name"] == name:
            field.update(aliases=list(aliases), **more)
    return made


ABSORBED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "the same": (schema(FIELDS), schema(FIELDS), ROW),
    "added": (schema(FIELDS), schema({"new": {"type": "array", "items": "string"}, **FIELDS}), {**ROW, "new": ["a"]}),
    "added, and read with its default": (
        alias(FIELDS, "x", default=2.0), schema({k: v for k, v in FIELDS.items() if k != "x"}), ROW),
    "added text, with its default": (
        alias(FIELDS, "carrier", default="AA"), schema({k: v for k, v in FIELDS.items() if k != "carrier"}), ROW),
    "added time, with its default": (
        alias(FIELDS, "when", default=5000), schema({k: v for k, v in FIELDS.items() if k != "when"}), ROW),
    "removed, of which the job does not read": (schema({**FIELDS, "old": "string"}), schema(FIELDS), ROW),
    "reordered": (schema(FIELDS), schema(dict(reversed(FIELDS.items()))), ROW),
    "renamed": (alias(FIELDS, "x", "miles", "km"), schema({"km" if k == "x" else k: v for k, v in FIELDS.items()}),
                {**ROW, "km": 2.0}),
    "int to double": (schema(FIELDS), schema({**FIELDS, "x": "int"}), {**ROW, "x": 2}),
    "long to double": (schema(FIELDS), schema({**FIELDS, "x": "long"}), {**ROW, "x": 2}),
    "float to double": (schema(FIELDS), schema({**FIELDS, "x": "float"}), ROW),
    "int to long": (schema({**FIELDS, "x": "long"}), schema({**FIELDS, "x": "int"}), {**ROW, "x": 2}),
    "long to float": (schema({**FIELDS, "x": "float"}), schema({**FIELDS, "x": "long"}), {**ROW, "x": 2}),
    "null added to a union": (schema(FIELDS), schema({**FIELDS, "x": nullable("double")}), ROW),
    "null taken from a union": (schema(FIELDS), schema({**FIELDS, "y": "float"}), ROW),
    "enum value added": (
        schema({**FIELDS, "carrier": SUIT}), schema({**FIELDS, "carrier": {**SUIT, "symbols": ["B6", "AA"]}}), ROW),
    "enum to text": (schema(FIELDS), schema({**FIELDS, "carrier": SUIT}), ROW),
    "another name of the record": (schema(FIELDS), {**schema(FIELDS), "name": "Flight", "namespace": "air"}, ROW),
}  # fmt: skip


@over("name", ABSORBED)
def test_absorbed(name: str) -> None:
    reader, writer, row = ABSORBED[name]
    expected, (tally,) = decoded(reader, {7: reader}, framed(7, reader, {**ROW, "old": "x"}))
    assert tally.trained == 1
    blocks, (told, before) = decoded(reader, {7: reader, 8: writer}, framed(8, writer, row),
                                     framed(7, reader, {**ROW, "old": "x"}))  # fmt: skip
    assert (told.trained, told.newest_event_time_ms) == (1, 5000), told.dead_rows
    assert before.trained == 1
    for block, values in blocks[0].items():
        np.testing.assert_array_equal(values, expected[0][block])


@over("name", ABSORBED)
def test_the_slow_meaning_resolves_alike(name: str, same: Any) -> None:
    """Cut at every byte too: what a dead letter's rows are shown as, and sent again by."""
    reader, writer, row = ABSORBED[name]
    answers = {"8": (canonical(json.dumps(writer)), "")}
    format = {"name": "avro", "schema": canonical(json.dumps(reader)), "frame": "registry", "schemas": answers.get}
    whole = framed(8, writer, row)
    assert same(JOB, format, whole).trained == 1
    for part in spoiled(whole, list, 0):
        same(JOB, format, part)


def test_what_a_writer_has_not_is_missing() -> None:
    writer = schema({k: v for k, v in FIELDS.items() if k != "y"})
    blocks, (tally,) = decoded(schema(FIELDS), {8: writer}, framed(8, writer, ROW))
    assert tally.trained == 1 and blocks[0]["numbers"].tolist() == [[2.0, -1.0]]
    writer = schema({k: v for k, v in FIELDS.items() if k != "x"})
    _, (tally,) = decoded(schema(FIELDS), {8: writer}, framed(8, writer, ROW))
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [("$.x", "expected number, got nothing (missing)")]


@over(
    ("reader", "writer", "field", "difference"),
    [
        ({"x": "int"}, {"x": "long"}, "x", "expected an int, got a long"),
        ({"x": "float"}, {"x": "double"}, "x", "expected a float, got a double"),
        ({"x": "long"}, {"x": "float"}, "x", "expected a long, got a float"),
        ({"x": "double"}, {"x": "string"}, "x", "expected a double, got text"),
        ({"y": nullable("float")}, {"y": ["null", "float", "string"]}, "y", "expected a float, got text"),
        ({"carrier": "string"}, {"carrier": "long"}, "carrier", "expected text, got a long"),
        ({"when": MILLIS}, {"when": logical("long", "timestamp-micros")}, "when",
         "expected timestamp-millis, got timestamp-micros"),
        ({"when": MILLIS}, {"when": "long"}, "when", "expected timestamp-millis, got a long"),
        ({"x": CENTS}, {"x": {**CENTS, "scale": 3}}, "x",
         "expected a decimal of scale 2, got a decimal of scale 3"),
    ],
)  # fmt: skip
def test_refused_with_the_difference(reader: Any, writer: Any, field: str, difference: str) -> None:
    was, now = schema({**FIELDS, **reader}), schema({**FIELDS, **writer})
    record_ = b"\0\0\0\0\x08" + b"\0" * 40
    _, (tally,) = decoded(was, {8: now}, record_)
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [(f"$.{field}", f"schema 8: {difference}")]


def test_a_difference_in_what_the_job_does_not_read_is_none() -> None:
    was, now = schema({**FIELDS, "note": "string"}), schema({**FIELDS, "note": "long"})
    _, (tally,) = decoded(was, {8: now}, framed(8, now, {**ROW, "note": 1}))
    assert tally.trained == 1


def test_frames() -> None:
    """What is none, an id that the registry knows not, and one that is not known yet, which waits."""
    row = schema(FIELDS)
    good = framed(7, row, ROW)
    _, told = decoded(row, {7: row}, good, b"\5" + good[1:], b"\0\0\0", b"", good[:4] + b"\x09" + good[5:],
                      good[:4] + b"\x0a" + good[5:], refused={9: "the registry knows no such schema"})  # fmt: skip
    assert told[0].trained == 1
    frame = "expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
    assert [(tally.dead_rows[0].path, tally.dead_rows[0].reason) for tally in told[1:]] == [
        ("$", f"{frame} byte 5"), ("$", f"{frame} 3 bytes"), ("$", f"{frame} 0 bytes"),
        ("$", "schema 9: the registry knows no such schema"),
        ("$", "schema 10 is not known yet"),
    ]  # fmt: skip
