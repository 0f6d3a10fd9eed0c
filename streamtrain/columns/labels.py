"""The labels of a row: one for the model's loss, or several, each for the head of its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from streamtrain.columns.column import LABEL, Column
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.kind import SKIP_HEAD, Block, Kind
from streamtrain.registry import nearest

Columns = Sequence[tuple[str, Column]]


def block_of(name: str) -> str:
    """The slot's block of one of several labels."""
    return block_name(name, LABEL)


@dataclass(frozen=True)
class Labels:
    """`loss`: of the one; "" where there are heads, whose losses stand in `head_losses` by their labels' names."""

    loss: str
    head_losses: tuple[tuple[str, str], ...]

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return dict(self.head_losses)

    def loss_of(self, name: str) -> str:
        """Returns the loss that a column is decoded for. Each of several labels has its own."""
        return self._by_name.get(name, self.loss)

    def _is_of_head(self, column: Column) -> bool:
        return column.role == LABEL and bool(self.head_losses)

    def blocks(self, kind: Kind[Any], columns: Columns) -> list[Block]:
        """Returns the blocks for the columns of a kind. Each of several labels has its own block."""
        if any(self._is_of_head(column) for _, column in columns):
            return [block for name, column in columns for block in self.blocks_of(name, column)]
        return kind.blocks(columns, self.loss)

    def blocks_of(self, name: str, column: Column) -> list[Block]:
        """The blocks of a slot, with what one column takes of them."""
        found = list(column.entry.blocks([(name, column)], self.loss_of(name)))
        if self._is_of_head(column):
            return [block._replace(name=block_of(name)) for block in found]
        return found

    def places(self, name: str, column: Column) -> list[str]:
        """The blocks that a column has its elements in."""
        return [block_of(name)] if self._is_of_head(column) else list(column.entry.places(name, column))

    def classes(self, name: str, column: Column) -> list[str]:
        """Returns the classes of a label as settings call them: by name, or by number if they have no names."""
        given = column.entry.engine_inputs([(name, column)], self.loss_of(name))
        return list(column.names) or [str(at) for at in range(given["classes"])]

    def engine_inputs(self, columns: Columns) -> dict[str, Any]:
        """Returns what the engine needs to know about the labels."""
        if self.head_losses:
            return {"classes": 0, "labels": [self._label_inputs(*each) for each in columns]}
        return dict(columns[0][1].entry.engine_inputs(columns, self.loss)) if columns else {"classes": 0}

    def _label_inputs(self, name: str, column: Column) -> dict[str, Any]:
        given = column.entry.engine_inputs([(name, column)], self.loss_of(name))
        partial = {"partial": True} if column.missing == SKIP_HEAD else {}
        return {"name": name, "block": block_of(name), **given, **partial}

    def problems(self, columns: Columns) -> Iterator[str]:
        """Labels and heads that have no other half; `columns`: those that are labels."""
        labels = dict(columns)
        if not self.head_losses:
            if not labels:
                yield 'columns: expected one column with role = "label", got none'
            if len(labels) > 1:
                first, second = list(labels)[:2]
                yield (f"columns.{second}: only one column can be the {LABEL}, and {first} is; of several each has a "
                       f"head, [model.heads.{second}]")  # fmt: skip
            yield from (f'columns.{name}: missing: "{SKIP_HEAD}" is for a label that has a head, [model.heads.{name}]'
                        for name, column in labels.items() if column.missing == SKIP_HEAD)  # fmt: skip
            return
        for name in labels:
            if name not in self._by_name:
                yield f"columns.{name}: expected a head for each label, [model.heads.{name}], got none"
        for name in self._by_name:
            if name not in labels:
                near = nearest(name, labels)
                hint = f"; did you mean {near}?" if near else ""
                yield f'heads.{name}: expected a column of that name with role = "{LABEL}", got none{hint}'
