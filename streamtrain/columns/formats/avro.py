"""Avro records: one datum of the schema that [records] names; a record is a row, an array of records is many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamtrain.columns.formats import _avro_columns
from streamtrain.columns.formats.avro_schema import (
    SCHEMA,
    canonical,
    rows_of,
)
from streamtrain.columns.schema import Schema
from streamtrain.compute.options import Problem, Word

HELP = "Avro by a schema: a record, or an array of records"
CELLS = ("value", "list")
OPTIONS = {
    "schema": SCHEMA,
    "frame": Word(
        of=("none", "registry"),
        default="none",
        help="what tells a datum's schema: this job's settings, or its name in a registry, in a header or before the "
        "datum; with [registry] that",
    ),
}
REGISTRY_OPTIONS = {"frame": "registry"}  # where the job has a registry and does not say otherwise
REGISTRY_TYPE = "AVRO"
NEEDS_SCHEMA = True  # to be read


def problems(*, schema: str, frame: str, **others: Any) -> Iterator[Problem]:
    """Yields the problems of settings that do not go together."""
    if not schema and frame == "none":
        yield Problem("schema", SCHEMA.takes())


def registry_reading(text: str, others: Sequence[str] = ()) -> str:
    """A schema as a registry holds it, with those that it refers to → as settings do. ValueError where it is none."""
    return canonical(text, tuple(others))


def registry_text(schema: str) -> str:
    """And back."""
    return schema


def mistakes(columns: Schema, *, schema: str, **others: Any) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no record of the schema can give."""
    return _avro_columns.mistakes(columns, rows_of(schema)) if schema else iter(())
