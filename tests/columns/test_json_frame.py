"""JSON behind a registry's frame: both decoders and both encoders mean the same; the schema is not looked into."""

from __future__ import annotations

import struct
from typing import Any

from looped import over
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import json as json_format
from streamtrain.columns.formats import parse
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema

SCHEMA = Schema.from_columns(
    {"x": {}, "name": {"kind": "category", "buckets": 8, "embed": 2}, "y": {"role": "label"}}, "binary_cross_entropy"
)
RECORD = b'{"x": 1.5, "name": "a", "y": 1}'
ANSWERS: dict[str, tuple[str, str]] = {"7": ("true", ""), "8": ("", "no such schema")}
FORMAT: dict[str, Any] = {"name": "json", "frame": "registry", "schema": "", "schemas": ANSWERS.get}


def frame(number: int) -> bytes:
    return b"\0" + struct.pack(">I", number)


@over(
    ("record", "reason"),
    [
        (frame(7) + RECORD, ""), (frame(7) + b"[%b, %b]" % (RECORD, RECORD), ""),
        (frame(8) + RECORD, "schema 8: no such schema"), (frame(9) + RECORD, "schema 9 is not known yet"),
        (RECORD, "expected a registry's frame (0 and a schema id, or 1 and a GUID), got byte 123"),
        (b"", "expected a registry's frame (0 and a schema id, or 1 and a GUID), got 0 bytes"),
        (frame(7)[:4], "expected a registry's frame (0 and a schema id, or 1 and a GUID), got 4 bytes"),
        (frame(7), "expected an object or an array, got the record's end at byte 0"),
        (frame(7) + frame(7) + RECORD, "expected an object or an array, got byte 0 at byte 0"),
        (frame(7) + RECORD[:-1], "expected ',' or '}', got the record's end at byte 30"),
    ],
)  # fmt: skip
def test_a_frame_and_what_stands_behind(record: bytes, reason: str) -> None:
    tally = _native.BatchFiller(FORMAT, RowSlot(SCHEMA, 8).plan).count([record])
    meant = parse(FORMAT, record)
    assert bool(meant.broken) == bool(reason)
    assert [dead[3] for dead in tally.dead_rows] == ([reason] if reason else [])
    assert tally.trained == (0 if reason else len(meant.rows))


def test_ids_are_asked_for_once() -> None:
    asked: list[str] = []

    def ask(number: str) -> tuple[str, str] | None:
        asked.append(number)
        return ANSWERS.get(number)

    filler = _native.BatchFiller({**FORMAT, "schemas": ask}, RowSlot(SCHEMA, 8).plan)
    filler.count([frame(number) + RECORD for number in (7, 8, 7, 7, 8)])
    assert asked == ["7", "8"]


def test_encoders_write_the_same_frame() -> None:
    given = {"name": "json", "frame": "registry", "schema": "{}", "schema_id": 0x01020304}
    for rows in ([{"x": 1.5, "name": "a", "y": 1}], [{"x": 1.5, "name": "a", "y": 1}, {"x": 2.5, "name": "b", "y": 0}]):
        (((_, value, _),),) = Records(SCHEMA, given, "here", 256, 1 << 20).blocks(rows, None, False)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        options = {name: option for name, option in given.items() if name != "name"}
        assert value == json_format.encode(SCHEMA, columns, **options)
        assert value[:5] == b"\0\1\2\3\4"
