"""The target that the model learns: 0 or 1, a class, or a number, depending on the loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pydantic import Field, StrictBool, StrictInt

from streamtrain import _native
from streamtrain.columns.kinds.kind import SKIP_HEAD, Block, Kind, Named, as_text
from streamtrain.columns.kinds.parsed import (
    BOOL,
    NUMBER,
    NUMBERS,
    ONE_TEXT,
    has_one_text,
    is_connect,
    number_problems,
)
from streamtrain.columns.kinds.standardize import MISPLACED, Standardized
from streamtrain.compute import losses
from streamtrain.registry import nearest

HELP = "what is learned: 0 or 1, a class, or a number, as the loss has it"
QUANTITIES = ("number", "count")  # kinds of a label that have no classes


class Options(Standardized):
    """The settings of a label column."""

    classes: list[str] | list[StrictBool] | list[StrictInt] | int | None = Field(
        None,
        description="label: the classes in order, as texts, whole numbers or booleans, which they are in predictions "
        "too; or how many there are, from 0 on",
        json_schema_extra={"misplaced": "only the label column has them"},
    )

    @property
    def names(self) -> list[str]:
        """Returns the names of the classes in order; empty if `classes` is only a count, or not set."""
        return [as_text(each) for each in self.classes] if isinstance(self.classes, list) else []

    @property
    def has_values(self) -> bool:
        """True where its classes are whole numbers or booleans, and no texts."""
        return not (isinstance(self.classes, list) and any(isinstance(each, str) for each in self.classes))

    @property
    def class_count(self) -> int:
        """Returns the number of classes that the column states; 0 if it states none."""
        return len(self.classes) if isinstance(self.classes, list) else self.classes or 0


class Label(Kind[Options]):
    role = "label"
    in_requests = "optional"
    beside = ("number", "category")
    block = "label"
    options = Options

    def problems(self, column: Options) -> Iterator[str]:
        if column.standardize and column.kind == "category":
            yield f"standardize: {MISPLACED}"
        if column.parse not in ONE_TEXT:
            yield from number_problems(column)
        if column.classes is None:
            return
        count = column.class_count
        if isinstance(column.classes, bool) or not 2 <= count <= _native.MAX_CLASSES:
            yield f"classes: expected 2 to {_native.MAX_CLASSES:,} classes, got {count!r}"
        elif len(set(column.names)) < len(column.names) or "" in column.names:
            yield "classes: expected names that differ and are not empty"

    def missing_problem(self, column: Options) -> str | None:
        """A class name is compared with `classes` where the loss is known."""
        return None if isinstance(column.missing, str) else super().missing_problem(column)

    def loss_problems(self, column: Options, loss: str) -> Iterator[str]:
        kind, problems = losses.label_kind(loss), []
        if kind in QUANTITIES:
            if column.kind == "category" or column.classes is not None:
                problems.append(f"expected a number for loss {loss!r}, got a category or classes")
            if column.parse in ONE_TEXT:
                problems.append(f'parse: expected one of {", ".join(NUMBERS)} for loss {loss!r}, got "{column.parse}"')
            if kind == "count" and column.standardize:
                problems.append(f"standardize: loss {loss!r} takes the label as it is")
        elif column.standardize:
            problems.append(f"standardize: only a number can be, and the label of loss {loss!r} is a class")
        elif problem := _parse_problem(column, kind):
            problems.append(problem)
        if kind == "class" and column.classes is None:
            problems.append(f"classes: expected their names, or how many, for loss {loss!r}, got none")
        if kind == "binary" and column.classes is not None and column.class_count != 2:
            more = ", ".join(name for name in losses.names() if losses.label_kind(name) == "class")
            problems.append(f"classes: expected 2 for loss {loss!r}, got {column.class_count}; more are for {more}")
        if not problems and column.has_stand_in:
            try:
                self.stand_in(column, loss)
            except ValueError as error:
                problems.append(f"missing: {error}")
        yield from problems

    def count(self, column: Options, loss: str) -> int:
        """Classes there are: 0 for a number, 2 for a binary label."""
        return {"binary": 2, "class": column.class_count}.get(losses.label_kind(loss), 0)

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        return [Block(self.block, losses.label_dtype(losses.label_kind(loss)), 1)]

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        inputs: dict[str, Any] = {"classes": 0}
        for _, column in columns:
            inputs["classes"] = self.count(column, loss)
            if column.standardize:
                inputs["standardize_label"] = column.standardized()
        return inputs

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        kind = losses.label_kind(loss)
        options: dict[str, Any] = {"is": kind, "parse": column.parse or ""}
        if kind not in QUANTITIES and column.classes is not None:
            options |= {"class_count": column.class_count, "classes": column.names}
        return options

    def stand_in(self, column: Options, loss: str) -> float:
        """The number the value stands for in the slot; ValueError where there is none. For no label stands a NaN, or a
        class below 0."""
        if column.missing == SKIP_HEAD:
            return -1.0 if losses.label_kind(loss) == "class" else math.nan
        value, names = column.missing, column.names
        if str(value) in names:
            return names.index(str(value))
        count = self.count(column, loss)
        if isinstance(value, str) or (count and (value != int(value) or not 0 <= value < count)):
            near = nearest(str(value), names)
            hint = f"; did you mean {near!r}?" if near else ""
            expected = f"a class name or an index below {count}" if count else "a number"
            raise ValueError(f'expected "dead_letter", "skip" or {expected}, got {value!r}{hint}')
        if losses.label_kind(loss) == "count" and value < 0:
            raise ValueError(f'expected "dead_letter", "skip" or a number not below 0, got {value!r}')
        return float(value)

    def is_float(self, column: Options) -> bool:
        return not column.classes

    def takes_text(self, column: Options) -> bool:
        """A class name, or what the decoder answers."""
        return True

    def takes_names(self, column: Options) -> bool:
        return bool(column.names)

    def is_numeric(self, column: Options) -> bool:
        """Also of classes that are whole numbers, which a text may write as 1, +1 or 1.0."""
        names = column.names
        numbers = not column.classes or (bool(names) and all(map(_is_whole, names)))
        return column.kind != "category" and not has_one_text(column.parse) and numbers

    def has_missing_words(self, column: Options) -> bool:
        """Not where the words may be classes."""
        return column.parse in ONE_TEXT or (not is_connect(column.parse) and all(map(_is_whole, column.names)))


def _parse_problem(column: Options, kind: str) -> str | None:
    """Returns what is wrong with the `parse` of a label of classes, or None."""
    if column.parse == BOOL:
        fits = set(column.names) == {"true", "false"} or (kind == "binary" and not column.names)
        names_text = 'classes = ["false", "true"], or none of a label of 0 and 1'
        return None if fits else f'parse: expected {names_text}, for "{BOOL}"'
    if column.parse == NUMBER or is_connect(column.parse):
        wrong = next((name for name in column.names if not _is_whole(name) or str(int(name)) != name), None)
        expected = f'parse: expected whole numbers as classes for "{column.parse}"'
        return None if wrong is None else f"{expected}, got {wrong!r}"
    if column.parse is not None and column.names:
        return f"parse: only {' and '.join(ONE_TEXT)} can be, as this label's classes have names"
    return None


def _is_whole(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit()


KIND = Label()
