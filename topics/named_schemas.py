"""The schemas that the records of a log name, and names that a registry knew nothing of: part of the round log.

A name is the id that the registry has given a schema, as "7", or the GUID that it has in every registry. Replay and
verify read what they name here and ask no registry: what it says of one may be another by then, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgpack

from streamtrain.errors import CheckFailed
from streamtrain.topics.wire import pack

HEADER = "__value_schema_id"  # that may name the schema of a message's value
Answer = tuple[str, str]  # a schema's text as settings hold it, or "" and why there is none
Value = TypeVar("Value", bytes, bytes | None)
_ID = re.compile(r"0|[1-9][0-9]{0,9}")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOST_ID = (1 << 32) - 1


def is_id(name: str) -> bool:
    """Returns whether a schema's name is a registry's id."""
    return _ID.fullmatch(name) is not None and int(name) <= _MOST_ID


def of_other_bytes(headers: Iterable[tuple[str, Value]]) -> tuple[tuple[str, Value], ...]:
    """A message's headers for one whose value is not that message's."""
    return tuple((name, value) for name, value in headers if name != HEADER)


def encode(schemas: Mapping[str, Answer]) -> bytes:
    """By name; equal ones give equal bytes, none give none. Names of one answer are told together."""
    if not schemas:
        return b""
    names: dict[Answer, list[str]] = {}
    for name in sorted(schemas):
        names.setdefault(schemas[name], []).append(name)
    return pack([[found, *answer] for answer, found in names.items()])


def decode(value: bytes) -> dict[str, Answer]:
    """CheckFailed for other bytes."""
    if not value:
        return {}
    try:
        entries = msgpack.unpackb(value)
    except (ValueError, RecursionError, msgpack.UnpackException) as cause:
        text = f"round log.schemas: expected a msgpack array, got bytes that do not decode ({cause})"
        raise CheckFailed(text) from None
    found: dict[str, Answer] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        match entry:
            case [list(names), str(text), str(refusal)] if all(map(_is_name, names)):
                found |= dict.fromkeys(names, (text, refusal))
            case _:
                raise CheckFailed(f"round log.schemas: expected [names, text, refusal], got {str(entry)[:80]}")
    return found


def _is_name(given: object) -> bool:
    return isinstance(given, str) and (is_id(given) or _GUID.fullmatch(given) is not None)
