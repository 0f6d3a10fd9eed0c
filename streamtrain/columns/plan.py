"""The schema as native decode plan."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.columns.schema import Schema


def native_plan(schema: Schema, layout: _native.SlotLayout, refuses_empty: bool = False) -> _native.DecodePlan:
    """The schema's columns compiled for slots of `layout`, whose blocks must be the schema's block_specs().
    `refuses_empty`: a row that names none of the columns is dead. UserMistake where a package is not installed that
    decodes their cells."""
    for _, column in schema.every:
        column.entry.require()
    columns, transforms = schema.native_plan()
    return _native.DecodePlan(columns, schema.short_columns(), layout, schema.constants(), transforms, refuses_empty)
