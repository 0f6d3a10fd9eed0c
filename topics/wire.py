"""Checked reading of msgpack maps that others wrote: types, lengths and ranges, with the path in every error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import msgpack

from streamtrain.errors import StreamtrainError

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
HEX_128_BIT = 32  # hex digits of a lineage or run id
DIGEST_BYTES = 32  # SHA-256
_DEPTH = 32  # of nested settings; a job file has five


def pack(document: object) -> bytes:
    packed = msgpack.packb(document, use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def plain(value: object, depth: int = 0) -> Plain:
    """JSON-like data in canonical form: sorted keys, tuples as lists, numbers that are not finite as None."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEPTH:
        raise ValueError(f"expected at most {_DEPTH} levels of nesting")
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("expected text as keys")
        return {key: plain(value[key], depth + 1) for key in sorted(value)}
    raise ValueError(f"expected plain data (None, bool, int, float, str, list, dict), got {type(value).__name__}")


def _is_plain_map(value: object) -> bool:
    try:
        return isinstance(plain(value), dict)
    except ValueError:
        return False


class Reader:
    """One map of a message. Every getter raises `error` naming what was read, the field, and what was found instead."""

    def __init__(self, document: object, what: str, error: type[StreamtrainError]) -> None:
        self.what = what
        self.error = error
        if not isinstance(document, dict):
            self.fail("", "a map", document)
        self._map: dict[Any, Any] = document

    @classmethod
    def unpack(cls, data: bytes, what: str, wire: int, error: type[StreamtrainError]) -> Reader:
        """Decodes one msgpack map whose field `wire` is the version this program reads."""
        limit = len(data)
        try:
            document = msgpack.unpackb(
                data, raw=False, strict_map_key=True, max_str_len=limit, max_bin_len=limit, max_array_len=limit,
                max_map_len=limit, max_ext_len=0,
            )  # fmt: skip
        except (ValueError, RecursionError, msgpack.UnpackException, OverflowError, TypeError) as cause:
            raise error(f"{what}: expected one msgpack map, got bytes that do not decode ({cause})") from cause
        reader = cls(document, what, error)
        found = reader.integer("wire")
        if found != wire:
            hint = "install a newer streamtrain to read it" if found > wire else "an older streamtrain wrote it"
            raise error(f"{what}: expected wire version {wire}, got {found}; {hint}")
        return reader

    def fail(self, name: str, expected: str, got: object) -> NoReturn:
        text = repr(got)
        raise self.error(f"{self.what}{'.' if name else ''}{name}: expected {expected}, got {text[:80]}")

    def value(self, name: str) -> Any:
        if name not in self._map:
            raise self.error(f"{self.what}.{name}: expected a value, got nothing")
        return self._map[name]

    def integer(self, name: str, low: int = 0, high: int = 2**63 - 1) -> int:
        value = self.value(name)
        if type(value) is not int or not low <= value <= high:
            self.fail(name, f"a whole number from {low} to {high}", value)
        return value

    def flag(self, name: str) -> bool:
        value = self.value(name)
        if type(value) is not bool:
            self.fail(name, "true or false", value)
        return value

    def text(self, name: str, length: int | None = None) -> str:
        value = self.value(name)
        if type(value) is not str or (length is not None and len(value) != length):
            self.fail(name, "text" if length is None else f"text of {length} letters", value)
        return value

    def hexadecimal(self, name: str, length: int) -> str:
        value = self.text(name, length)
        if not set(value) <= set("0123456789abcdef"):
            self.fail(name, f"{length} hex digits", value)
        return value

    def binary(self, name: str, length: int | None = None) -> bytes:
        value = self.value(name)
        if type(value) is not bytes or (length is not None and len(value) != length):
            self.fail(name, "bytes" if length is None else f"{length} bytes", value)
        return value

    def items(self, name: str) -> list[Any]:
        value = self.value(name)
        if type(value) is not list:
            self.fail(name, "a list", value)
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value: dict[str, Any] = self.value(name)
        if not _is_plain_map(value):
            self.fail(name, "a map of plain data with text keys", value)
        return value

    def mappings(self, name: str) -> list[dict[str, Any]]:
        items = self.items(name)
        if not all(map(_is_plain_map, items)):
            self.fail(name, "a list of maps of plain data with text keys", items)
        return items

    def child(self, name: str) -> Reader:
        return Reader(self.value(name), f"{self.what}.{name}", self.error)

    def children(self, name: str) -> list[Reader]:
        return [Reader(item, f"{self.what}.{name}[{at}]", self.error) for at, item in enumerate(self.items(name))]

    def pair(self, value: object, name: str) -> tuple[int, int]:
        """Two whole numbers from 0 on, such as (offset, row)."""
        if not (isinstance(value, list) and len(value) == 2 and all(type(item) is int and item >= 0 for item in value)):
            self.fail(name, "two whole numbers from 0 on", value)
        return value[0], value[1]
