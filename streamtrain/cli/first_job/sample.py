"""Rows of a source without objects in them, and what was decided for a column."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamtrain.cli.first_job.cells import Row, SampledColumn, change_events, flattened
from streamtrain.columns.paths import Path, place
from streamtrain.errors import UserMistake

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN = re.compile(r'(?:kind|role) = "(\w+)"')
OPERATION = "op"  # the column of a change event's operation
DELETES = ("d", "t")  # operations that leave no row


@dataclass(frozen=True)
class Decision:
    """One column: its settings in [columns], or none where it is left out; and why."""

    name: str
    settings: str = ""
    reason: str = ""
    other: str = ""  # the other choice, where the sample leaves two
    width: int = 0  # columns of the input matrix
    points: int = 0  # numbers of pictures
    feature: bool = False
    sparse: bool = False  # a feature that is no part of the input matrix
    loss: str = ""
    classes: int = 0
    transforms: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its kind or role, as the table shows it."""
        found = _SHOWN.search(self.settings)
        return found[1] if found else "number" if self.settings else "left out"


@dataclass(frozen=True)
class Sample:
    """Rows of a source, without objects in them.

    labels: names of the columns to learn. as_texts: the source has nothing but texts, as CSV has, so that `produce`
    writes numbers for them. counts: how many values differ in the whole source, where that is known.
    """

    source: str
    rows: Sequence[Row]
    labels: Sequence[str]
    paths: Mapping[str, str]
    as_texts: bool = False
    weight: str = ""  # the column that is one
    counts: Mapping[str, int] = field(default_factory=dict)
    operation: str = ""  # the column that says what a change event did

    @classmethod
    def of(cls, source: str, rows: Sequence[Row], labels: Sequence[str], weight: str = "") -> Sample:
        """Of change events only the row after the change counts. Raises UserMistake where there is no row, or no such
        label."""
        if not rows:
            raise UserMistake(f"{source}: expected rows, found none")
        envelope, operation = change_events(rows), ""
        if envelope is not None:
            rows = [_after(row, envelope) for row in rows]
        flat, paths = flattened(rows)
        if envelope is not None:
            flat, paths, operation = _named_after(flat, paths, envelope)
        names = list(dict.fromkeys(name for row in flat for name in row))
        found = [next((name for name, path in paths.items() if path == each), each) for each in dict.fromkeys(labels)]
        for label in found:
            if label not in names:
                raise UserMistake(f"--label: expected a column of {source}, one of {', '.join(names)}; got {label!r}")
        as_texts = all(cell is None or isinstance(cell, str) for row in rows for cell in row.values())
        return cls(source, flat, found, paths, as_texts, weight, operation=operation)

    def names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def distinct(self, column: SampledColumn) -> int:
        return max(len(column.distinct), self.counts.get(column.name, 0))

    def parse(self, column: SampledColumn, how: str) -> str:
        """The setting that reads texts, where the source's records have some."""
        return "" if self.as_texts or not column.has_text else f', parse = "{how}"'


def _after(row: Row, envelope: Path) -> Row:
    """The row after a change, and at the envelope's place what the change was."""
    change = row[str(envelope[0])] if envelope else row
    found: Row = {OPERATION: change.get("op"), **(change.get("after") or {})}
    return found


def _named_after(
    rows: Sequence[Row], paths: Mapping[str, str], envelope: Path
) -> tuple[list[Row], dict[str, str], str]:
    """Rows of change events without deletes, the paths of their columns, and the column of the operation."""
    kept = [row for row in rows if row.get(OPERATION) not in DELETES]
    names = dict.fromkeys(name for row in kept for name in row)
    within = {name: f"{place((*envelope, 'after')).removeprefix('.')}{_step(paths.get(name), name)}" for name in names}
    within[OPERATION] = place((*envelope, "op")).removeprefix(".")
    return kept, within, OPERATION


def _step(path: str | None, name: str) -> str:
    if path is None:
        return place((name,))
    return path if path.startswith("[") else f".{path}"


def toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
