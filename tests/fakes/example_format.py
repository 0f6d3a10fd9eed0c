"""A format with the options that its examples are read with."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.formats import Format, checked, format_names, is_lines, mistakes, record_format
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.oracles.records import encode, oracle, parse


def example_format(given: Format) -> Format:
    """A format's name with the options of its examples, where it has any; any other format as it is."""
    if not isinstance(given, str):
        return given
    options = getattr(oracle(given), "EXAMPLE_OPTIONS", {})
    return {"name": given, **options} if options else given


def with_schema(name: str, fields: dict[str, str]) -> Format:
    """A format by its name; where it takes a schema, with one of these fields, each a "number" or a "text"."""
    schema_of = getattr(oracle(name), "schema_of", None)
    return name if schema_of is None else {"name": name, "schema": schema_of(fields)}


def needs_no_option(format_name: str) -> bool:
    """Returns True where a format's name describes all of it."""
    try:
        return bool(checked({"name": format_name}))
    except UserMistake:
        return False


def row_formats() -> list[str]:
    """The formats whose rows have columns of any kind; tests/columns/test_sparse.py has the others."""
    return [name for name in format_names() if getattr(record_format(name), "CELLS", ()) != ("value", "pairs")]


def untyped_formats() -> list[str]:
    """The row formats in which a column's cell may be of any type, which no field of Protobuf is."""
    return [name for name in row_formats() if name != "protobuf"]


def is_columnar(name: str) -> bool:
    """Returns True where a record has columns of one type each, whose encoder refuses what does not fit."""
    return not is_lines(name) and parse(example_format(name), oracle(name).EXAMPLES[0]).columns is not None


def plain_formats(schema: Schema) -> list[str]:
    """The formats that need no option and suit the columns."""
    return [name for name in format_names() if needs_no_option(name) and not list(mistakes(name, schema))]


def encoded(format: Format, schema: Schema, columns: Any) -> bytes:
    """Columns as a record, by the format's own slow encoder."""
    return encode(example_format(format), schema, columns)
