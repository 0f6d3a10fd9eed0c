"""Transforms saw a column's stand-in in every row of a packed block, unless one asked whether its cells were there."""

from __future__ import annotations

import pytest
from example_format import plain_formats
from slots import decode_rows

from streamtrain.columns.formats import encode_records
from streamtrain.columns.schema import Schema

SCHEMA = Schema.from_columns(
    {"x": {"missing": 0.5}, "late": {"role": "label"}}, "binary_cross_entropy", {"twice": {"scale": "x", "by": 2}}
)


@pytest.mark.parametrize("format_name", plain_formats(SCHEMA))
def test_a_stand_in_is_one_rows(format_name: str) -> None:
    rows = [{"x": None if i % 3 == 0 else float(i), "late": 1} for i in range(40)]
    found = []
    for record in encode_records(format_name, SCHEMA, rows):
        blocks, _ = decode_rows(format_name, SCHEMA, record)
        found += blocks["numbers"].tolist()
    assert found == [[0.5, 1.0] if row["x"] is None else [row["x"], 2 * row["x"]] for row in rows]
