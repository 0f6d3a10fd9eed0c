"""The rows of a record that are shown and sent again are those the decoders see."""

from __future__ import annotations

import json

import msgpack
from looped import over

from streamtrain.columns.rows import record_rows, unusable_path
from streamtrain.columns.schema import Schema

TAGS = Schema.from_columns({"x": {}, "y": {"role": "label"}}, "binary_cross_entropy")


@over("name", ["json", "msgpack"])
def test_an_array_in_a_column_the_job_ignores_is_a_cell(name: str) -> None:
    encode = {"json": lambda row: json.dumps(row).encode(), "msgpack": msgpack.packb}[name]
    row = {"tags": ["a", "b"], "x": 1.5, "y": 1}
    assert record_rows(TAGS, name, encode(row)).rows == [row]
    columns = {"x": [1, 2], "tags": ["a", "b"], "y": [0, 1], "note": "both"}
    turned = [{"x": 1, "tags": "a", "y": 0}, {"x": 2, "tags": "b", "y": 1}]
    assert record_rows(TAGS, name, encode(columns)).rows == turned


def test_a_remainder_is_named_and_what_no_column_takes_has_a_path() -> None:
    record = msgpack.packb([{"x": 1, "y": 0}, {"x": 2, "y": b"raw"}, {"x": 3, "y": 1}])
    found = record_rows(TAGS, "msgpack", record[:-2])
    assert found.rows[0] == {"x": 1, "y": 0} and found.broken is not None
    assert [unusable_path(row) for row in found.rows] == [None, "$.y (binary)"]
    assert record_rows(TAGS, "json", b"").broken == "expected a record, got an empty value"
