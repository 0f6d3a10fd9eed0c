"""Patterns that texts are searched for: a part of what regular expressions say, compiled for native/decode/transforms.

Taken are letters, `.`, classes ([a-z], [^,], \\d \\w \\s and their opposites, of ASCII), groups ( ) and (?: ), | * + ?
{m,n}, lazy or not, ^ and $. What is repeated takes a letter at least; nothing refers back or looks around.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from streamtrain._native import PatternCode as Code

MOST_STEPS = 1_000
_LAST = 0x10FFFF
_CLASSES = {"d": [(48, 57)], "w": [(48, 57), (65, 90), (95, 95), (97, 122)], "s": [(9, 13), (32, 32)]}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_SPECIAL = frozenset(".[](){}|*+?^$\\")
_COUNT = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}")
Ranges = list[tuple[int, int]]
Emit = Callable[["Program"], None]


@dataclass
class Program:
    """Steps of a code and two numbers; those of LETTERS are the first of their ranges, and how many."""

    steps: list[tuple[int, int, int]] = field(default_factory=list)
    ranges: Ranges = field(default_factory=list)

    def add(self, code: int, one: int = 0, other: int = 0) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise ValueError(f"expected a pattern of at most {MOST_STEPS:,} steps, got more")
        self.steps.append((code, one, other))
        return len(self.steps) - 1


@dataclass(frozen=True)
class Part:
    """A part of a pattern: what it becomes, and whether it may take no letter."""

    emit: Emit
    may_be_empty: bool


@dataclass(frozen=True)
class Pattern:
    """`groups`: how many there are."""

    program: Program
    groups: int


def compiled(pattern: str, group: int) -> Pattern:
    """The program that finds the first match, the preferred of those that begin there, and its group (0: all of it).
    ValueError says what is wrong with the pattern."""
    reader = _Reader(pattern, group)
    part = reader.either()
    if reader.at < len(pattern):
        raise ValueError(f"expected the pattern's end at {reader.at}, got {pattern[reader.at]!r}")
    program = Program()
    _group(part, group == 0).emit(program)
    program.add(Code.MATCH)
    return Pattern(program, reader.groups)


class _Reader:
    def __init__(self, pattern: str, target_group: int) -> None:
        self.pattern, self.target_group, self.at, self.groups, self._depth = pattern, target_group, 0, 0, 0

    def either(self) -> Part:
        parts = [self._sequence()]
        while self._took("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _either(parts)

    def _took(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _sequence(self) -> Part:
        parts = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._repeated(self._one()))
        return _sequence(parts)

    def _repeated(self, part: Part) -> Part:
        found = _COUNT.match(self.pattern, self.at)
        if found:
            least = int(found[1])
            most = int(found[3]) if found[3] else None if found[2] else least
            self.at = found.end()
        else:
            signs = {"*": (0, None), "+": (1, None), "?": (0, 1)}
            if self.pattern[self.at : self.at + 1] not in signs:
                return part
            least, most = signs[self.pattern[self.at]]
            self.at += 1
        if part.may_be_empty:
            raise ValueError(f"expected what takes a letter before a repetition at {self.at}")
        if most is not None and least > most:
            raise ValueError(f"expected the lower count first, got {least} and {most}")
        return _repeated(part, least, most, lazy=self._took("?"))

    def _one(self) -> Part:
        letter = self.pattern[self.at]
        if letter == "(":
            return self._in_group()
        if letter == "[":
            return self._class()
        self.at += 1
        if letter == ".":
            return _letters([(0, 9), (11, _LAST)])
        if letter in "^$":
            code = Code.BEGIN if letter == "^" else Code.END
            return Part(lambda program: _add(program, code), True)
        if letter == "\\":
            return _letters(self._escaped())
        if letter in _SPECIAL:
            raise ValueError(f"expected a letter at {self.at - 1}, got {letter!r}; say \\{letter} for the letter")
        return _letters([(ord(letter), ord(letter))])

    def _in_group(self) -> Part:
        self.at += 1
        self._depth += 1
        if self._depth > 50:
            raise ValueError("expected at most 50 groups within each other")
        counts = not self._took("?:")
        self.groups += counts
        number = self.groups
        part = self.either()
        if not self._took(")"):
            raise ValueError(f"expected ) at {self.at}")
        self._depth -= 1
        return _group(part, counts and number == self.target_group)

    def _escaped(self) -> Ranges:
        if self.at >= len(self.pattern):
            raise ValueError("expected something behind the last \\")
        letter = self.pattern[self.at]
        self.at += 1
        if letter.lower() in _CLASSES:
            found = _CLASSES[letter.lower()]
            return found if letter.islower() else _others(found)
        if letter.isascii() and letter.isalnum() and letter not in _ESCAPES:
            raise ValueError(f"expected d, w, s, n, t, r or a sign behind \\, got {letter!r}")
        code = ord(_ESCAPES.get(letter, letter))
        return [(code, code)]

    def _class(self) -> Part:
        self.at += 1
        negated, ranges, first = self._took("^"), [], True
        while first or not self._took("]"):
            first = False
            low = self._of_class()
            if len(low) == 1 and low[0][0] == low[0][1] and self._is_range():
                self.at += 1
                high = self._of_class()
                if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                    raise ValueError(f"expected a range from lower to higher at {self.at}")
                low = [(low[0][0], high[0][0])]
            ranges += low
        return _letters(_others(ranges) if negated else ranges)

    def _is_range(self) -> bool:
        return self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "")

    def _of_class(self) -> Ranges:
        if self.at >= len(self.pattern):
            raise ValueError("expected ] at the pattern's end")
        letter = self.pattern[self.at]
        self.at += 1
        return self._escaped() if letter == "\\" else [(ord(letter), ord(letter))]


def _others(ranges: Ranges) -> Ranges:
    """All code points but these."""
    found, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return [*found, (at, _LAST)] if at <= _LAST else found


def _add(program: Program, code: int) -> None:
    program.add(code)


def _letters(ranges: Ranges) -> Part:
    def emit(program: Program) -> None:
        program.add(Code.LETTERS, len(program.ranges), len(ranges))
        program.ranges += ranges

    return Part(emit, False)


def _group(part: Part, is_target: bool) -> Part:
    def emit(program: Program) -> None:
        program.add(Code.OPEN)
        part.emit(program)
        program.add(Code.CLOSE)

    return Part(emit, part.may_be_empty) if is_target else part


def _sequence(parts: list[Part]) -> Part:
    def emit(program: Program) -> None:
        for part in parts:
            part.emit(program)

    return Part(emit, all(part.may_be_empty for part in parts))


def _either(parts: list[Part]) -> Part:
    def emit(program: Program) -> None:
        ends = []
        for part in parts[:-1]:
            choice = program.add(Code.SPLIT)
            part.emit(program)
            ends.append(program.add(Code.JUMP))
            program.steps[choice] = Code.SPLIT, choice + 1, len(program.steps)
        parts[-1].emit(program)
        for end in ends:
            program.steps[end] = Code.JUMP, len(program.steps), 0

    return Part(emit, any(part.may_be_empty for part in parts))


def _repeated(part: Part, least: int, most: int | None, lazy: bool) -> Part:
    def choose(program: Program, choice: int) -> None:
        """Between what follows the choice and what comes now."""
        ways = (choice + 1, len(program.steps))
        program.steps[choice] = Code.SPLIT, *(ways[::-1] if lazy else ways)

    def emit(program: Program) -> None:
        for _ in range(least):
            part.emit(program)
        if most is None:
            choice = program.add(Code.SPLIT)
            part.emit(program)
            program.add(Code.JUMP, choice)
            return choose(program, choice)
        choices = []
        for _ in range(most - least):
            choices.append(program.add(Code.SPLIT))
            part.emit(program)
        for choice in choices:
            choose(program, choice)

    return Part(emit, least == 0)
