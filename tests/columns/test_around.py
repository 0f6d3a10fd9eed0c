"""Columns from the message around a record: every format and kind against the slow reading, by row and by block."""

from __future__ import annotations

import json
from typing import Any

import msgpack
from example_format import row_formats, with_schema
from long_tables import in_full_all
from looped import over
from slots import RowSlot

from streamtrain.columns.formats import encode_rows, record_format
from streamtrain.columns.schema import Schema
from tests.columns.conftest import every_format
from tests.columns.reference import Around

LATE = {"role": "label"}
HEADERS = (("tenant", b"acme"), ("when", b"2026-11-22T02:10:00Z"), ("other", b"x"))
AROUND = [
    Around(),
    Around(3, 2**40, 1_800_000_000_123, "zürich".encode(), HEADERS),
    Around(1, 7, 5, b"", (("tenant", b"first"), ("tenant", b""), ("when", None))),
    Around(1, 7, 5, None, (("tenant", b""), ("tenant", b"last"))),
    Around(0, 0, 0, b"\xff", HEADERS),
    Around(0, 0, -1, b"k", (("when", b"no time"),)),
]
KINDS: dict[str, dict[str, Any]] = {
    "number": {},
    "decimal": {"parse": "decimal"},
    "category": {"kind": "category", "buckets": 1000},
    "time": {"role": "event_time", "unit": "ms"},
    "moment": {"role": "event_time", "parse": "iso8601"},
    "weight": {"role": "weight", "parse": "decimal"},
    "class": {"role": "label", "classes": ["acme", "bee", "1.5"]},
    "index": {"role": "label", "classes": 3},
    "label": {"role": "label", "parse": "decimal"},
}
SOURCES = ["key", "headers.tenant", "timestamp", "partition", "offset"]
TEXTS: list[bytes | None] = [None, b"", b"acme", b"1.5", b"-1", b"1", b"nan", b"2026-11-22T02:10:00Z", b"\xc3"]


@every_format
@over("around", AROUND, ids=range(len(AROUND)))
def test_examples_in_messages(same: Any, schemas: Any, format_name: str, around: Around) -> None:
    told = [
        same(schemas["around"], format_name, record, capacity, around)
        for record in record_format(format_name).EXAMPLES
        for capacity in (1, 3, 64)
    ]
    good = around.key != b"\xff" and (b"no time" not in dict(around.headers).values())
    assert any(each.trained for each in told) == good


def schema_of(kind: str, source: str, missing: Any) -> Schema | None:
    stand_in = {"value": {"class": "acme", "category": "acme"}.get(kind, 1)}.get(missing, missing)
    loss = {"class": "softmax_cross_entropy", "index": "softmax_cross_entropy"}.get(kind, "mean_squared_error")
    late = {} if KINDS[kind].get("role") == "label" else {"y": LATE}
    try:
        return Schema.from_columns({"x": {}, "a": {**KINDS[kind], "from": source, "missing": stand_in}, **late}, loss)
    except Exception as error:
        assert "is text; say how" in str(error)
        return None


@in_full_all()
@over("missing", ["dead_letter", "skip", "value"])
@over("kind", KINDS)
def test_every_kind_from_every_part_by_row_and_by_block(same: Any, kind: str, missing: str, take: Any) -> None:
    for source in SOURCES:
        schema = schema_of(kind, source, missing)
        if schema is None:
            continue
        few = encode_rows("json", schema, [{"x": 1.5, "y": 1, "a": 5}] * 3)
        many = record_format("packed").encode(schema, {"x": [1.5] * 200, "y": [1] * 200, "a": [5] * 200})
        by_text = source in ("key", "headers.tenant")
        told = [(text, 7) for text in TEXTS] if by_text else [(b"acme", at) for at in (-1, 0, 1, 2, 77)]
        for text, number in take(told):
            around = Around(max(number, 0), max(number, 0), number, text, (("tenant", b"acme"), ("tenant", text)))
            same(schema, "json", few, 64, around)
            same(schema, "packed", many, 170, around)


INSIDE = Schema.from_columns(
    {"x": {}, "t": {"kind": "category", "buckets": 50, "from": "headers.t"}, "late": LATE}, "binary_cross_entropy"
)


@over("name", row_formats())
def test_what_is_around_a_record_is_not_looked_for_in_it(name: str) -> None:
    """RecordWriter's encoder does not write it there either."""
    schema = INSIDE
    format = with_schema(name, {"x": "number", "t": "text", "late": "number"})
    ((_, told),) = RowSlot(schema, 4, format).record(encode_rows(format, schema, [{"x": 1, "late": 1, "t": "inside"}]))
    assert told.dead_rows[0][2:4] == ("headers.t", "expected text, integer or boolean, got nothing (missing)")


def test_floats_of_an_array_row_pass_over_them(same: Any, schemas: Any) -> None:
    record = msgpack.packb([[1.5, 2.5, "AA", 1.0], [3.5, 4.5, None, 0.0]], use_single_float=True)
    assert same(schemas["around"], "msgpack", record, 4, AROUND[1]).trained == 2


def test_requests_take_arrays_without_them(same: Any, schemas: Any) -> None:
    schema = schemas["around"].for_requests()
    for record in (b'[1.5, 2, "AA"]', b'[1.5, 2, "AA", 1]', b"[1.5, 2]", b'{"x1": 1, "x2": 2}'):
        for around in AROUND:
            same(schema, "json", record, 4, around)


def test_rows_of_a_program_have_them_as_fields() -> None:
    schema = Schema.from_columns({"x": {}, "at": {"from": "offset"}, "late": LATE}, "binary_cross_entropy")
    slot = RowSlot(schema, 4, "json")
    assert slot.fill_row({"x": 1, "at": 5, "late": 1}) is None
    assert slot.views["numbers"][0].tolist() == [1, 5]
    bare = RowSlot(schema.without_message(), 4, "json")
    ((rows, _),) = bare.record(json.dumps({"x": 1, "at": 6, "late": 1}).encode())
    assert rows == 1
    assert bare.views["numbers"][0].tolist() == [1, 6]
    assert schema.without_message().for_requests().decoded_names == {"x", "at"} and not bare.schema.reads_around


def test_columns_without_it_have_the_digest_they_had() -> None:
    given = {"x": {}, "late": LATE}
    assert "from" not in json.dumps(Schema.from_columns(given, "binary_cross_entropy").to_dict())
    other = Schema.from_columns({**given, "at": {"from": "offset"}}, "binary_cross_entropy")
    assert Schema.from_dict(other.to_dict()).digest() == other.digest()
    assert Schema.from_dict(other.to_dict()).reads_around
