"""Messages as documents that JSON can hold, for people and their tools: what each topic's document() is made of."""

from __future__ import annotations

import json
from typing import Any

from streamtrain.topics.topic import Message

Document = dict[str, Any]
MAX_TEXT_BYTES = 200  # of a value nobody could decode


def text(raw: bytes | None) -> Any:
    """A text where the bytes are one."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def cut(raw: bytes | None) -> Any:
    """The same of a value that may be long."""
    if raw is None or len(raw) <= MAX_TEXT_BYTES:
        return text(raw)
    return {
        "bytes": len(raw),
        "begins": text(raw[:MAX_TEXT_BYTES].decode("utf-8", "ignore").encode()) or raw[:16].hex(),
    }


def headers(message: Message) -> Document:
    """{"headers": …} where there are any."""
    return {"headers": {name: text(value) for name, value in message.headers}} if message.headers else {}


def key_of(document: Document) -> str:
    """A message's key with a space before it; nothing where it has none."""
    return "" if document["key"] is None else f" {document['key']}"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
