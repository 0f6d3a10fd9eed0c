"""Rows as a snapshot's model sees them: numbers standardised, and what its transforms with state make."""

from __future__ import annotations

import numpy as np

from streamtrain.columns.row_plan import Array, Cells, Part, RowPlan, Rows
from streamtrain.columns.schema import Schema
from streamtrain.columns.served import Served
from streamtrain.errors import UserMistake


class SeenRows:
    """The rows of a plan's batches as one snapshot makes them, to the bits of LiveModel's: its own plan computes them.

    parts: the columns of the result. A column that only feeds a transform with state has none. The part of a category
    or a list, whose numbers are looked up in a table, holds row numbers of that table.
    """

    def __init__(self, served: Served, schema: Schema, plan: RowPlan) -> None:
        """UserMistake where the snapshot is of other columns."""
        if Schema.from_dict(served.manifest.schema).digest() != schema.digest():
            raise UserMistake(
                f"snapshot {served.version}: expected one of the job's columns and transforms, got one of others; "
                "give a snapshot that this job file has trained"
            )
        self._plan, self._seen = plan, served.seen(plan.layout)
        feeds = {name for name, column in schema.fed.items() if column.stateful is None}
        self.parts = [self._part(part) for part in plan.parts if part.name not in feeds]

    def __call__(self, rows: Rows) -> Rows:
        """The newest batch of the plan, whose arrays hold until the next one."""
        numbers = self._seen.numbers(self._plan.slot)[: rows.count]
        found = {part.name: self._of(part, rows, numbers) for part in self.parts}
        return Rows(found, rows.count, rows.left_out, rows.filtered)

    def _part(self, part: Part) -> Part:
        """Whatever a transform with state reads, it makes a number or an index; what is standardised is float32."""
        if part.name in self._seen.stateful_columns or (part.block.name, part.first) in self._seen.places:
            return part._replace(holds=np.dtype(np.float32))
        return part._replace(holds=np.dtype(np.int32)) if part.name in self._seen.indexes else part

    def _of(self, part: Part, rows: Rows, numbers: Array) -> Cells:
        if part.name in self._seen.indexes:
            return self._seen.index(part.name, self._plan.slot)[: rows.count]
        first = self._seen.stateful_columns.get(part.name, self._seen.places.get((part.block.name, part.first)))
        if first is None:
            return rows[part.name]
        return numbers[:, first] if part.width == 1 else numbers[:, first : first + part.width]
