"""The schemas that the records of a log name, and ids that a registry knew nothing of: part of the round log.

Replay and verify read them here and ask no registry: what it says of an id may be another by then, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgpack

from streamtrain.errors import CheckFailed
from streamtrain.topics.wire import pack

Answer = tuple[str, str]  # a schema's text as settings hold it, or "" and why there is none
_MOST_ID = (1 << 32) - 1


def encode(schemas: Mapping[int, Answer]) -> bytes:
    """By id; equal ones give equal bytes, none give none. Ids of one answer are told together."""
    if not schemas:
        return b""
    ids: dict[Answer, list[int]] = {}
    for schema_id in sorted(schemas):
        ids.setdefault(schemas[schema_id], []).append(schema_id)
    return pack([[found, *answer] for answer, found in ids.items()])


def decode(value: bytes) -> dict[int, Answer]:
    """CheckFailed for other bytes."""
    if not value:
        return {}
    try:
        entries = msgpack.unpackb(value)
    except (ValueError, RecursionError, msgpack.UnpackException) as cause:
        text = f"round log.schemas: expected a msgpack array, got bytes that do not decode ({cause})"
        raise CheckFailed(text) from None
    found: dict[int, Answer] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        match entry:
            case [list(ids), str(text), str(refusal)] if all(type(i) is int and 0 <= i <= _MOST_ID for i in ids):
                found |= dict.fromkeys(ids, (text, refusal))
            case _:
                raise CheckFailed(f"round log.schemas: expected [ids, text, refusal], got {str(entry)[:80]}")
    return found
