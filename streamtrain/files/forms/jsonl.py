"""JSON lines: an object in each line is a row."""

from __future__ import annotations

import json
from collections.abc import Iterator

from streamtrain.errors import UserMistake
from streamtrain.files.source import Source
from streamtrain.files.wanted import Row

HELP = "JSON lines: an object a row"
SUFFIXES = (".jsonl", ".ndjson")
TEXT = True


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    source.begin()
    for number, line in source.lines():
        try:
            row = json.loads(source.text(line, number))
        except ValueError as error:
            raise _no_object(source, number, line, f": {error}") from error
        if not isinstance(row, dict):
            raise _no_object(source, number, line, "")
        yield number, row


def _no_object(source: Source, number: int, line: bytes, why: str) -> UserMistake:
    got = line.strip()[:60].decode(errors="replace")
    return UserMistake(f"{source.name}:{number}: expected a JSON object, got {got!r}{why}")


def count(source: Source) -> int:
    source.begin()
    return sum(1 for _ in source.lines())
