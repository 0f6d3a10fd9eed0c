"""Settings of a layer or an optimizer, declared once, in its own file: what they take, their default and their use.

The check of the job file, the engine's check of a manifest's spec, `list`, its help and all errors come from there.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
REQUIRED: Any = object()   # as a default: the setting must be given


@dataclass(frozen=True, kw_only=True)
class Option(ABC):
    """One setting."""

    help: str
    default: Any = REQUIRED

    @abstractmethod
    def takes(self) -> str:
        """Returns what it takes, in words."""

    @abstractmethod
    def read(self, given: Any) -> Any:
        """The value as the engine has it; ValueError where `given` is none of what it takes."""

    def names(self) -> Sequence[str]:
        """The names it takes, where it takes names."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Whole(Option):
    """A whole number from `least` to `most`."""

    least: int = 0
    most: int

    def takes(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def read(self, given: Any) -> int:
        if type(given) is not int or not self.least <= given <= self.most:
            raise ValueError
        return given


@dataclass(frozen=True, kw_only=True)
class Number(Option):
    """A finite number from `least`, or above `above`; to `most`, or below `below`."""

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf

    def takes(self) -> str:
        low = f" from {self.least:g}" if self.least > -math.inf else f" above {self.above:g}"
        high = f" to {self.most:g}" if self.most < math.inf else f" below {self.below:g}"
        return "a number" + (low if "inf" not in low else "") + (high if "inf" not in high else "")

    def read(self, given: Any) -> float:
        in_range = type(given) in (int, float) and self.least <= given <= self.most
        if not (in_range and self.above < given < self.below):   # which infinity and NaN are not either
            raise ValueError
        return float(given)


@dataclass(frozen=True, kw_only=True)
class Flag(Option):
    """True or false."""

    def takes(self) -> str:
        return "true or false"

    def read(self, given: Any) -> bool:
        if type(given) is not bool:
            raise ValueError
        return given


@dataclass(frozen=True, kw_only=True)
class Word(Option):
    """One of some names; a function gives those that are found when they are asked for."""

    of: Sequence[str] | Callable[[], Sequence[str]]

    def names(self) -> Sequence[str]:
        return self.of() if callable(self.of) else self.of

    def takes(self) -> str:
        return f"one of {', '.join(self.names())}"

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or given not in self.names():
            raise ValueError
        return given


@dataclass(frozen=True, kw_only=True)
class Name(Option):
    """A name that something else has, which says so when the two are put together."""

    what: str

    def takes(self) -> str:
        return self.what

    def read(self, given: Any) -> str:
        if not isinstance(given, str):
            raise ValueError
        return given


@dataclass(frozen=True, kw_only=True)
class ColumnName(Option):
    """The name of a column that a transform reads."""

    def takes(self) -> str:
        return "the name of a column"

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not given:
            raise ValueError
        return given


@dataclass(frozen=True, kw_only=True)
class Duration(Option):
    """A text such as "90s", "1h" or "7d"; the engine has seconds, which it takes too. 0: none."""

    def takes(self) -> str:
        return 'a duration of at least 1s such as "90s", "1h" or "7d"'

    def read(self, given: Any) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", given) if isinstance(given, str) else None
        seconds = float(match[1]) * DURATION_UNITS_MS[match[2]] / 1_000 if match else given
        is_default = type(given) is float and given == self.default
        if type(seconds) not in (int, float) or not (is_default or 1 <= seconds <= 1e11):
            raise ValueError
        return float(seconds)


@dataclass(frozen=True, kw_only=True)
class Several(Option):
    """An array of `least` to `most` values of one kind; the engine has a tuple."""

    of: Option
    least: int
    most: int

    def takes(self) -> str:
        count = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"an array of {count}, each {self.of.takes()}"

    def read(self, given: Any) -> tuple[Any, ...]:
        if not isinstance(given, list | tuple) or not self.least <= len(given) <= self.most:
            raise ValueError
        return tuple(self.of.read(each) for each in given)


@dataclass(frozen=True, kw_only=True)
class ClassNumbers(Option):
    """A number above 0 for each class of the label: an array in their order, or a table by their names, in which those
    that are not named have 1. The engine has an array; an empty one is 1 for all."""

    default: Any = field(default_factory=list)

    def takes(self) -> str:
        return "a number above 0 for each class, as an array in their order or as a table by their names"

    def read(self, given: Any) -> list[float] | dict[str, float]:
        positive = Number(above=0, help=self.help)
        if isinstance(given, Mapping):
            return {str(name): positive.read(value) for name, value in given.items()}
        if not isinstance(given, list | tuple):
            raise ValueError
        return [positive.read(value) for value in given]

    def wrong(self, setting: str, given: Any, classes: Sequence[str]) -> Iterator[Problem]:
        """Yields what is wrong with values that read() takes, by the names of the classes in their order."""
        if isinstance(given, Mapping):
            for name in given:
                if str(name) not in classes:
                    yield Problem(setting, f"names of classes, {', '.join(classes)}", name, classes)
        elif given and len(given) != len(classes):
            yield Problem(setting, f"{len(classes)} numbers, one for each class", list(given))

    def in_order(self, given: Any, classes: Sequence[str]) -> list[float]:
        if isinstance(given, Mapping):
            return [given.get(name, 1.0) for name in classes]
        return list(given)


@dataclass(frozen=True, kw_only=True)
class Document(Option):
    """A text that may stand in a file of its own: whoever reads settings puts it in the place of the file's name.

    `reading` gives the text in the one form that settings hold it in; ValueError says what is wrong with it.
    """

    what: str
    is_text: Callable[[str], bool]
    reading: Callable[[str], str]
    of_file: Callable[[bytes], str] = bytes.decode   # a file's text; UnicodeDecodeError, or ValueError as of `reading`

    def takes(self) -> str:
        return f"a file with {self.what}, or its text"

    def read(self, given: Any) -> str:
        if isinstance(given, str) and given == self.default:
            return given
        if not isinstance(given, str) or not self.is_text(given):
            raise ValueError
        return self.reading(given)


Options = Mapping[str, Option]
NOTHING: Any = object()   # of a Problem: there is no value


@dataclass(frozen=True)
class Problem:
    """A problem with a setting `name`, or with the whole table of settings where that is "". `near`: names it may
    mean."""

    name: str
    expected: str
    got: Any = NOTHING
    near: Sequence[str] = ()
    unknown: bool = False   # `expected` says of what it is no setting; `near` are those there are

    def __str__(self) -> str:
        if self.unknown:
            return f"{self.expected}; " + (f"allowed: {', '.join(self.near)}" if self.near else "it takes none")
        missing = self.got is NOTHING
        return f"missing, expected {self.expected}" if missing else f"expected {self.expected}, got {self.got!r}"


def problems(given: Mapping[str, Any], options: Options, what: str) -> Iterator[Problem]:
    """Everything that is wrong with the settings `given`; `what` they are of, as in "setting of adam"."""
    for name, value in given.items():
        if name not in options:
            yield Problem(name, f"unknown {what}", NOTHING, tuple(options), unknown=True)
            continue
        try:
            options[name].read(value)
        except ValueError:
            yield Problem(name, options[name].takes(), value, options[name].names())
    for name, option in options.items():
        if option.default is REQUIRED and name not in given:
            yield Problem(name, option.takes())


def read(given: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """All settings by name, defaults filled in; `given` has no problems."""
    return {name: option.read(given.get(name, option.default)) for name, option in options.items()}
