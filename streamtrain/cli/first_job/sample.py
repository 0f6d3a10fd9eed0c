"""Rows of a source without objects in them, and what was decided for a column."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamtrain.cli.first_job.cells import Row, SampledColumn, change_events, flattened
from streamtrain.cli.first_job.connect import Decimals
from streamtrain.columns.paths import Path, place
from streamtrain.errors import UserMistake

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KIND = re.compile(r'(?:kind|role) = "(\w+)"')
_OPERATION = "\0op"  # a change event's operation beside the fields of its row, none of which has such a name
DELETES = ("d", "t")  # operations that leave no row


@dataclass(frozen=True)
class Decision:
    """One column: its settings in [columns], or none where it is left out; and why."""

    name: str
    settings: str = ""
    reason: str = ""
    other: str = ""  # the other choice, where the sample leaves two
    values: int = 0  # of a category, how many differ
    width: int = 0  # columns of the input matrix
    points: int = 0  # numbers of pictures
    feature: bool = False
    sparse: bool = False  # a feature that is no part of the input matrix
    loss: str = ""
    classes: int = 0
    transforms: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Returns the column's kind or role, as the table shows it."""
        found = _KIND.search(self.settings)
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
    unreadable: Mapping[str, str] = field(default_factory=dict)  # columns that no record can give, and why

    @classmethod
    def of(cls, source: str, rows: Sequence[Row], labels: Sequence[str], weight: str = "") -> Sample:
        """Builds a sample; of change events only the row after the change counts.

        Raises UserMistake where there is no row, or no such label.
        """
        if not rows:
            raise UserMistake(f"{source}: expected rows, found none")
        decimals = Decimals.of(rows)
        rows = [decimals.read(row) for row in rows] if decimals else rows
        envelope, operation = change_events(rows), ""
        if envelope is not None:
            rows = [_after(row, envelope) for row in rows]
        flat, paths = flattened(rows)
        if envelope is not None:
            flat, paths, operation = _named_after(flat, paths, envelope)
            if not flat:
                raise UserMistake(f"{source}: expected change events with a row after the change, found deletes alone")
        names = list(dict.fromkeys(name for row in flat for name in row))
        found = [next((name for name, path in paths.items() if path == each), each) for each in dict.fromkeys(labels)]
        for label in found:
            if label not in names:
                raise UserMistake(f"--label: expected a column of {source}, one of {', '.join(names)}; got {label!r}")
        as_texts = all(cell is None or isinstance(cell, str) for row in rows for cell in row.values())
        reasons = {place(path).removeprefix("."): why for path, why in decimals.unreadable.items()}
        unreadable = {name: reasons[path] for name, path in paths.items() if path in reasons}
        return cls(source, flat, found, paths, as_texts, weight, operation=operation, unreadable=unreadable)

    def names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def distinct(self, column: SampledColumn) -> int:
        return max(len(column.distinct), self.counts.get(column.name, 0))

    def parse(self, column: SampledColumn, how: str) -> str:
        """The setting that reads texts, where the source's records have some that need one."""
        if column.parse:
            return f', parse = "{column.parse}"'
        return "" if self.as_texts or not column.has_text else f', parse = "{how}"'


def _after(row: Row, envelope: Path) -> Row:
    """Returns the row after a change, and what the change was; nothing where a row is no envelope."""
    change = row.get(str(envelope[0])) if envelope else row
    change = change if isinstance(change, dict) else {}
    after = change.get("after")
    return {_OPERATION: change.get("op"), **(after if isinstance(after, dict) else {})}


def _named_after(
    rows: Sequence[Row], paths: Mapping[str, str], envelope: Path
) -> tuple[list[Row], dict[str, str], str]:
    """Rows of change events without deletes, the paths of their columns, and the column of the operation."""
    names = {name: name for row in rows for name in row}
    operation = "op"
    while operation in names:  # a field of the row
        operation += "_"
    names[_OPERATION] = operation
    left = [row for row in rows if row[_OPERATION] not in (*DELETES, None)]
    kept = [{names[name]: cell for name, cell in row.items()} for row in left]
    del names[_OPERATION]
    within = {name: f"{place((*envelope, 'after')).removeprefix('.')}{_step(paths.get(name), name)}" for name in names}
    within[operation] = place((*envelope, "op")).removeprefix(".")
    return kept, within, operation


def _step(path: str | None, name: str) -> str:
    if path is None:
        return place((name,))
    return path if path.startswith("[") else f".{path}"


def change_operation(name: str) -> Decision:
    """Returns the decision for the column that says what a change event did."""
    return Decision(name, 'role = "input", kind = "category"', "what a change event did; an update is a new example")


def toml_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
