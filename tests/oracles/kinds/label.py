"""The target: 0 or 1, the index of a class, or a number, depending on the loss."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.kinds.parsed import ONE_TEXT, has_one_text
from streamtrain.compute import losses
from tests.oracles.kinds import Cell, Oracle, Wrong
from tests.oracles.kinds._numbers import float32, number_in, number_of, one_text, text_of, whole


class Label(Oracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        kind, names = losses.label_kind(loss), column.names
        if kind in ("number", "count"):
            cell = number_of(column, cell)
            rounded = float32(cell)
            if isinstance(cell, str) or (kind == "count" and cell < 0):
                raise Wrong
            return rounded
        cell = one_text(column, cell) if has_one_text(column.parse) else number_of(column, cell)
        if isinstance(cell, bool) and "true" not in names and "false" not in names:
            if kind == "binary":
                return float(cell)
            raise Wrong
        if isinstance(cell, str | bool):
            return _index(names, text_of(cell))
        number = whole(cell)
        if number is None:
            raise Wrong
        if any(map(_is_whole, names)):
            return _index(names, str(number))
        if not 0 <= number < (2 if kind == "binary" else column.class_count):
            raise Wrong
        return number

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        return column.entry.stand_in(column, loss)

    def written(self, column: Column, loss: str, text: str) -> Cell:
        if text in column.names or column.parse in ONE_TEXT:
            return text
        if text in ("true", "false") and losses.label_kind(loss) == "binary":
            return text == "true"
        return number_in(column, text)


def _is_whole(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _index(names: list[str], name: str) -> int:
    if name not in names:
        raise Wrong
    return names.index(name)


ORACLE = Label()
