"""A topic's golden messages: one a line, with the document and the line that `read` shows of it.

`python tests/fakes/golden_messages.py KEY` brings documents and lines of such a file up to date; its messages stay.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamtrain.errors import StreamtrainError
from streamtrain.topics import REGISTRY
from streamtrain.topics.topic import Message, topic

FOLDER = Path(__file__).parents[1] / "golden"


def golden_file(key: str) -> Path:
    return FOLDER / f"{key}.v{topic(key).wire_version}.messages.jsonl"


def describe(key: str, message: Message) -> dict[str, Any]:
    """The document with its key, as `read` has it, and its line; or the error."""
    name = None if message.key is None else message.key.decode("utf-8", "replace")
    try:
        document = {"key": name, **REGISTRY.get(key).document(message)}
    except StreamtrainError as error:
        return {"error": str(error)}
    return {"document": document, **({} if "error" in document else {"line": REGISTRY.get(key).line(document)})}


def read(key: str) -> list[tuple[Message, dict[str, Any]]]:
    """Each message with what is shown of it."""
    found = []
    for text in golden_file(key).read_text().splitlines():
        each = json.loads(text)
        name, value, headers = each.pop("key"), each.pop("value"), each.pop("headers")
        pairs = tuple((header, b64decode(raw)) for header, raw in headers)
        found.append((Message(_bytes(name), _bytes(value), pairs), each))
    return found


def write(key: str, messages: Sequence[Message]) -> None:
    lines = []
    for message in messages:
        headers = [[name, _text(raw)] for name, raw in message.headers]
        each = {"key": _text(message.key), "value": _text(message.value), "headers": headers, **describe(key, message)}
        lines.append(json.dumps(each, ensure_ascii=False) + "\n")
    golden_file(key).write_text("".join(lines))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _text(raw: bytes | memoryview | None) -> str | None:
    return None if raw is None else b64encode(raw).decode()


if __name__ == "__main__":
    write(sys.argv[1], [message for message, _ in read(sys.argv[1])])
