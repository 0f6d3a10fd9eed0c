"""The base class of transforms: the columns that one reads, those that it makes, and the methods that each has.

A cell is a float, a text, a time (an int: milliseconds since 1970), the hash of a value that is not text, or None if it
is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from streamtrain.compute.options import ColumnName, Option, Several

NUMBER, TEXT, TIME, HASH = "number", "text", "time", "hash"  # what a column of cells holds
Cell = float | str | int | None


class Source(NamedTuple):
    """A column that a transform reads."""

    name: str
    holds: str
    hash_bits: int = 32  # of a text
    buckets: int | None = None  # of a number: whole and below


class Result(NamedTuple):
    """A column that a transform makes."""

    holds: str
    suffix: str = ""  # behind the transform's name and "_"
    buckets: int | None = None  # of a number: whole and below, so that a category needs no hash


@dataclass(frozen=True)
class Use:
    """A transform as a job has it."""

    name: str
    given: Mapping[str, Any]  # its own settings, defaults filled in
    sources: tuple[Source, ...]
    hash_bits: int = 32  # of the column it makes


class Transform:
    """One transform. Where a question is not answered, it makes a number of one number."""

    takes: ClassVar[AbstractSet[str]] = frozenset({NUMBER})  # what a column may hold that it reads

    def reads(self, options: Mapping[str, Option], given: Mapping[str, Any]) -> list[str]:
        """The names of the columns it reads, in order. ValueError says why nobody can tell."""
        found: list[str] = []
        for name, option in options.items():
            if isinstance(option, ColumnName):
                found.append(given[name])
            elif isinstance(option, Several) and isinstance(option.of, ColumnName):
                found += given[name]
        return found

    def problems(self, use: Use) -> Iterable[str]:
        """Yields what is wrong with a use of the transform. A problem begins with its setting's name if it has one."""
        for source in use.sources:
            if source.holds not in self.takes:
                expected = " or ".join(sorted(self.takes))
                yield f"expected columns that hold a {expected}, got {source.name}, which holds a {source.holds}"

    def results(self, use: Use) -> list[Result]:
        """The columns it makes."""
        return [Result(NUMBER)]

    def native_options(self, use: Use) -> dict[str, Any]:
        """Returns the settings that the native half gets."""
        return {name: value for name, value in use.given.items() if type(value) in (int, float, bool)}

    def meaning(self, use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
        """The cells it makes of one row's, slowly. `given`: whether the record gave each."""
        return [None if cells[0] is None else finite(self.of(use, float(cells[0])))]

    def of(self, use: Use, value: float) -> float | None:
        """The same of one number that is there."""
        raise NotImplementedError


def finite(value: float | None) -> float | None:
    """Returns a finite value as it is. Any other becomes None: it is missing."""
    return value if value is not None and math.isfinite(value) else None
