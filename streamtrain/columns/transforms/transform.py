"""The base class of transforms: the columns that one reads, those that it makes, and the methods that each has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from streamtrain.compute.options import ColumnName, Option, Several

NUMBER, TEXT, TIME, HASH = "number", "text", "time", "hash"  # what a column of cells holds
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
