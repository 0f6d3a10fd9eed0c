"""JSON: an object in each line is a row; or one array of objects."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any

from streamtrain.columns.rejected import Unreadable
from streamtrain.errors import UserMistake
from streamtrain.files.column_selection import Row
from streamtrain.files.source import Source, is_too_long, not_utf8, too_long

HELP = "JSON: an object a line, or one array of objects"
SUFFIXES = (".jsonl", ".ndjson", ".json")
TEXT = True


def rows(source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    """An object's line; in an array its number, from 1."""
    if is_array(source):
        yield from _elements(source)
        return
    for number, line in source.lines():
        try:
            row = json.loads(line.decode())
        except UnicodeDecodeError as error:
            yield number, Unreadable(not_utf8(error))
        except (ValueError, RecursionError) as error:
            yield number, _no_object(line, f": {error}")
        else:
            yield number, row if isinstance(row, dict) else _no_object(line)


def is_array(source: Source) -> bool:
    """Returns whether the file is one array, whose elements are no lines."""
    return source.begin().lstrip().startswith(b"[")


def _elements(source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    """The objects of an array, of which no more than one lies in memory beside a piece of the file."""
    utf8 = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text, number, between = "", 0, "["
    while True:
        text = text.lstrip()
        if text.startswith(between) and (rest := text[1:].lstrip()):
            if rest.startswith("]") and between == "[":
                return _check_end(source, rest[1:])
            try:
                row, end = _decoded(rest)
            except RecursionError as error:
                raise UserMistake(
                    f"{source.name}: element {number + 1} of the array: expected lists and objects no deeper within "
                    f"each other than can be read, got deeper ones ({error}); leave that element out, or write an "
                    "object a line, where such a line is left out alone"
                ) from None
            except ValueError as error:
                problem = str(error)
            else:
                number += 1
                yield number, row if isinstance(row, dict) else _no_object(rest[:end].encode())
                text, between = rest[end:], ","
                continue
        elif text.startswith("]") and between == ",":
            return _check_end(source, text[1:])
        else:
            problem = f"expected {between!r} or ']', got {text[:20]!r}"
        if not (piece := source.read()):
            raise UserMistake(f"{source.name}: element {number + 1} of the array: {problem}")
        text += utf8.decode(piece)  # bytes that are not UTF-8 are half a surrogate pair, which no column takes
        if is_too_long(len(text)):
            raise too_long(f"{source.name}: element {number + 1} of the array")


def _decoded(text: str) -> tuple[Any, int]:
    """The value that a text begins with, and where it ends."""
    try:
        return _DECODER.raw_decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a whole number of more digits than Python reads, which no column takes
        return _LONG_NUMBERS.raw_decode(text)


def _whole(digits: str) -> float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


_DECODER, _LONG_NUMBERS = json.JSONDecoder(), json.JSONDecoder(parse_int=_whole)


def _check_end(source: Source, text: str) -> None:
    while not (text := text.strip()) and (piece := source.read()):
        text = piece.decode(errors="replace")
    if text:
        raise UserMistake(f"{source.name}: expected nothing behind the end of the array, got {text[:60]!r}")


def _no_object(line: bytes, why: str = "") -> Unreadable:
    got = line.strip()[:60].decode(errors="replace")
    return Unreadable(f"expected a JSON object, got {got!r}{why}")


def count(source: Source) -> int:
    if is_array(source):
        return sum(1 for _ in _elements(source))
    return sum(1 for _ in source.lines())
