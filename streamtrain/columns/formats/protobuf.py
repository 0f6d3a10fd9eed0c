"""Protobuf records: one message of the schema that [records] names; one that has no other field than many is many rows.

A field that its schema lets go unwritten (proto3 without `optional`) is then 0, false or "", any other is missing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Any

from streamtrain.columns.formats import _protobuf_columns
from streamtrain.columns.formats._proto_writing import proto_text
from streamtrain.columns.formats.protobuf_schema import (
    SCHEMA,
    canonical_files,
    messages_of,
)
from streamtrain.columns.schema import Schema
from streamtrain.compute.options import Name, Problem, Word

HELP = "Protobuf by a schema: a message, or many in one"
CELLS = ("value", "list")
OPTIONS = {
    "schema": SCHEMA,
    "message": Name(
        what="a message's full name", default="", help="of the schema's messages; default: the file's first"
    ),
    "frame": Word(
        of=("none", "registry"),
        default="none",
        help="what tells a message's schema: this job's settings, or its name in a registry and which of its messages "
        "it is, in a header or before the message; with [registry] that",
    ),
}
REGISTRY_OPTIONS = {"frame": "registry"}  # where the job has a registry and does not say otherwise
REGISTRY_TYPE = "PROTOBUF"
NEEDS_SCHEMA = True  # to be read


def problems(*, schema: str, frame: str, message: str = "", **others: Any) -> Iterator[Problem]:
    """Yields the problems of settings that do not go together."""
    if not schema:
        if frame == "none":
            yield Problem("schema", SCHEMA.takes())
        return
    try:
        messages_of(schema).named(message)
    except ValueError as error:
        yield Problem("message", str(error), message)


def registry_reading(text: str, others: Sequence[str] = ()) -> str:
    """A schema as a registry holds it, a .proto or a file descriptor in base64 → as settings do; else ValueError.

    `others`: the files that it imports, those that import nothing of the rest first.
    """
    return canonical_files([_registry_file(each) for each in (*others, text)])


def _registry_file(text: str) -> str | bytes:
    if "{" in text:
        return text
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("expected a .proto or a file descriptor in base64") from None


def registry_text(schema: str) -> str:
    """And back."""
    return proto_text(messages_of(schema))


def mistakes(columns: Schema, *, schema: str, message: str = "", **others: Any) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no record of the schema can give."""
    if not schema:
        return iter(())
    known = messages_of(schema)
    return _protobuf_columns.mistakes(columns, known, known.row(known.named(message))[0])
