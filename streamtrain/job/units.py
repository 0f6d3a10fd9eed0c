"""The values a setting takes beyond plain numbers: durations ("250ms", "off"), sizes ("64MiB"), starts, one of some
names.

Each is pydantic metadata and says itself in words, for messages, help and the settings table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from streamtrain.compute.options import DURATION_UNITS_MS

SIZE_UNITS_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_amount(text: str, units: dict[str, int]) -> float | None:
    """The amount in the smallest unit, or None where `text` is not a number followed by one of the units."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]


def format_amount(amount: float, units: dict[str, int]) -> str:
    """The shortest text `parse_amount` reads back: in the largest unit that divides the amount."""
    for unit, factor in sorted(units.items(), key=lambda item: -item[1]):
        if amount >= factor and amount % factor == 0:
            return f"{int(amount / factor)}{unit}"
    smallest = min(units, key=lambda unit: units[unit])
    return f"{amount:g}{smallest}"


class Takes:
    """Metadata of a setting: the words for what it takes, and how a value of the file becomes one of the program."""

    def __init__(self, words: str) -> None:
        self.words = words

    def parse(self, value: Any) -> Any:
        """The program's value; raises ValueError where `value` is none of what the setting takes."""
        return value

    def write(self, value: Any) -> Any:
        """The value as it stands in a file; `parse` reads it back."""
        return value

    def failed(self) -> PydanticCustomError:
        return PydanticCustomError("takes", "{expected}", {"expected": self.words})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        def parse(value: Any) -> Any:
            try:
                return self.parse(value)
            except ValueError:
                raise self.failed() from None

        return core_schema.no_info_plain_validator_function(
            parse, serialization=core_schema.plain_serializer_function_ser_schema(self.write)
        )


class Text(Takes):
    """A text that matches a pattern."""

    def __init__(self, words: str, pattern: str) -> None:
        super().__init__(words)
        self.pattern = re.compile(pattern)

    def parse(self, value: Any) -> str:
        if isinstance(value, str) and self.pattern.fullmatch(value):
            return value
        raise ValueError


class Duration(Takes):
    """Seconds; with `off`, "off" is None."""

    def __init__(self, least_ms: int, *, off: bool = False) -> None:
        self.least_ms = least_ms
        self.off = off
        or_off = ', or "off"' if off else ""
        least = format_amount(least_ms, DURATION_UNITS_MS)
        super().__init__(f'a duration of at least {least} such as "250ms", "1s" or "10m"{or_off}')

    def parse(self, value: Any) -> float | None:
        if self.off and value == "off":
            return None
        amount_ms = parse_amount(value, DURATION_UNITS_MS) if isinstance(value, str) else None
        if amount_ms is None or amount_ms < self.least_ms:
            raise ValueError
        return amount_ms / 1_000

    def write(self, value: float | None) -> str:
        return "off" if value is None else format_amount(round(value * 1_000, 6), DURATION_UNITS_MS)


class Count(Takes):
    """A whole number; the word `none` is None."""

    def __init__(self, least: int, most: int, none: str = "off") -> None:
        self.least, self.most, self.none = least, most, none
        super().__init__(f'a whole number from {least} to {most:,}, or "{none}"')

    def parse(self, value: Any) -> int | None:
        if value == self.none:
            return None
        if type(value) is not int or not self.least <= value <= self.most:
            raise ValueError
        return value

    def write(self, value: int | None) -> int | str:
        return self.none if value is None else value


class Tables(Takes):
    """Tables by name as tables that have one: their order matters, and a manifest sorts the keys of its tables."""

    def parse(self, value: Any) -> list[dict[str, Any]]:
        if isinstance(value, dict) and all(isinstance(table, dict) for table in value.values()):
            return [{"name": name, **table} for name, table in value.items()]
        if isinstance(value, list) and all(isinstance(table, dict) for table in value):
            return value
        raise ValueError


class Size(Takes):
    """Bytes."""

    def __init__(self, least_bytes: int) -> None:
        self.least_bytes = least_bytes
        super().__init__(
            f'a size of at least {format_amount(least_bytes, SIZE_UNITS_BYTES)} such as "64MiB" or "900kB"'
        )

    def parse(self, value: Any) -> int:
        amount_bytes = parse_amount(value, SIZE_UNITS_BYTES) if isinstance(value, str) else None
        if amount_bytes is None or amount_bytes < self.least_bytes:
            raise ValueError
        return int(amount_bytes)

    def write(self, value: int) -> str:
        return format_amount(value, SIZE_UNITS_BYTES)


class Start(Takes):
    """ "earliest", "latest", or a time as an ISO 8601 text with its zone (UTC where none is given)."""

    def __init__(self) -> None:
        super().__init__('"earliest", "latest" or a time such as 2026-01-31T00:00:00Z')

    def parse(self, value: Any) -> str:
        if value in ("earliest", "latest"):
            return str(value)
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day)
        elif isinstance(value, str):
            moment = datetime.fromisoformat(value)
        else:
            raise ValueError
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


class OneOf(Takes):
    """One of some names; asked for when a value is checked, so that a registry is read no earlier."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        super().__init__("one of the names")
        self.names = names

    def parse(self, value: Any) -> str:
        if isinstance(value, str) and value in self.names():
            return value
        raise ValueError

    def failed(self) -> PydanticCustomError:
        return PydanticCustomError("one_of", "{allowed}", {"allowed": self.names()})
