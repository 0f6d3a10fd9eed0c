"""Packed records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamtrain.columns.formats import packed
from streamtrain.columns.formats.parsed import Pairs
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.oracles.parsed import Parsed, registry_frame


def columns_of(
    schema: Schema, columns: Mapping[str, Any], hashed: bool = True
) -> tuple[dict[str, packed.PackedColumn], int]:
    """The schema's columns that `columns` holds (arrays or lists of one length; others are left out), and the rows.

    Raises UserMistake for cells that no column can hold, and for columns of differing lengths.
    """
    named = [(name, column, columns[name]) for name, column in schema.columns if name in columns]
    lengths = {name: len(values) for name, _, values in named}
    if len(set(lengths.values())) > 1:
        raise UserMistake(f"expected columns of one length, got {lengths}")
    found = {name: packed.column_of(schema, name, column, values, hashed) for name, column, values in named}
    return found, next(iter(lengths.values()), 0)


def encode(schema: Schema, columns: Mapping[str, Any]) -> bytes:
    """Decodes all rows of the schema's columns."""
    return packed.record_of(*columns_of(schema, columns))


EXAMPLE_SCHEMA = Schema.from_columns(
    {
        "x1": {},
        "x2": {},
        "carrier": {"kind": "category", "buckets": 64, "missing": ""},
        "late": {"role": "label", "missing": "skip"},
    },
    "binary_cross_entropy",
)


EXAMPLE_COLUMNS: list[dict[str, Any]] = [
    {"x1": [1.5], "x2": [-2000], "carrier": ["AA"], "late": [1]},
    {"x1": np.arange(20, dtype=np.float32), "x2": np.arange(20), "carrier": ["AA", "é"] * 10, "late": [0, 1] * 10},
    {
        "x1": [1, None, 3],
        "x2": [4.5, 5, float("nan")],
        "carrier": ["AA", 7, None],
        "late": [0, None, 1],
        "other": [1, 2, 3],
    },
    {
        "x1": np.ma.masked_greater(np.arange(100.0), 97),
        "x2": np.arange(100, dtype=np.uint8),
        "late": np.ones(100, bool),
    },
    {"x1": np.zeros(0), "x2": np.zeros(0), "carrier": [], "late": []},
]
EXAMPLES = [encode(EXAMPLE_SCHEMA, columns) for columns in EXAMPLE_COLUMNS]


def parse(record: bytes) -> Parsed:
    """The record's values. A column that cannot be read is Unusable as a whole."""
    if (frame := registry_frame(record)) is not None:
        return Parsed(broken=frame)
    columns, rows, broken = packed.read(record)
    return Parsed(many=True, columns=Pairs(columns), row_count=rows, broken=broken)
