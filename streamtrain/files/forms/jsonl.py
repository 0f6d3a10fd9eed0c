"""JSON: an object in each line is a row; or one array of objects."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator

from streamtrain.errors import UserMistake
from streamtrain.files.source import Source, is_too_long, too_long
from streamtrain.files.wanted import Row

HELP = "JSON: an object a line, or one array of objects"
SUFFIXES = (".jsonl", ".ndjson", ".json")
TEXT = True


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    """An object's line; in an array its number, from 1."""
    if is_array(source):
        yield from _elements(source)
        return
    for number, line in source.lines():
        try:
            row = json.loads(source.text(line, number))
        except (ValueError, RecursionError) as error:
            raise _no_object(source, number, line, f": {error}") from error
        if not isinstance(row, dict):
            raise _no_object(source, number, line, "")
        yield number, row


def is_array(source: Source) -> bool:
    """Returns whether the file is one array, whose elements are no lines."""
    return source.begin().lstrip().startswith(b"[")


def _elements(source: Source) -> Iterator[tuple[int, Row]]:
    """The objects of an array, of which no more than one lies in memory beside a piece of the file."""
    decoder, utf8 = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")()
    text, number, between = "", 0, "["
    while True:
        text = text.lstrip()
        if text.startswith(between) and (rest := text[1:].lstrip()):
            if rest.startswith("]") and (between == "[" or text.startswith("]")):
                return
            try:
                row, end = decoder.raw_decode(rest)
            except RecursionError as error:
                raise UserMistake(f"{source.name}: element {number + 1} of the array: {error}") from error
            except ValueError as error:
                problem = str(error)
            else:
                number += 1
                if not isinstance(row, dict):
                    raise _no_object(source, number, rest[:end].encode(), "")
                yield number, row
                text, between = rest[end:], ","
                continue
        elif text.startswith("]") and between == ",":
            return
        else:
            problem = f"expected {between!r} or ']', got {text[:20]!r}"
        if not (piece := source.read()):
            raise UserMistake(f"{source.name}: element {number + 1} of the array: {problem}")
        try:
            text += utf8.decode(piece)
        except UnicodeDecodeError as error:
            raise UserMistake(f"{source.name}: element {number + 1} of the array: expected UTF-8: {error}") from error
        if is_too_long(len(text)):
            raise too_long(f"{source.name}: element {number + 1} of the array")


def _no_object(source: Source, number: int, line: bytes, why: str) -> UserMistake:
    got = line.strip()[:60].decode(errors="replace")
    return UserMistake(f"{source.name}:{number}: expected a JSON object, got {got!r}{why}")


def count(source: Source) -> int:
    if is_array(source):
        return sum(1 for _ in _elements(source))
    return sum(1 for _ in source.lines())
