"""The transforms of a job in their order: which are at work, what they read of records, and their native form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamtrain import _native
from streamtrain.columns.column import INPUT, Column
from streamtrain.columns.compiled_transforms import (
    CompiledTransform,
    Table,
    TransformColumn,
    TransformError,
    beside,
    compiled,
    condition,
    sources,
)
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.kinds.kind import SKIP
from streamtrain.columns.transforms.transform import HASH, TEXT, TIME
from streamtrain.compute.stateful_inputs import feeds

Columns = Sequence[tuple[str, Column]]
_NOT_READ = {
    "optional": "no request has it", "decoded": "transforms do not read it",
    "ignored": 'say from = "key" of a column to read the key',
}  # fmt: skip


class Pipeline:
    """Compiled of columns and transforms. `problems`: what is wrong with them, each beginning with its transform."""

    def __init__(
        self, columns: Columns, transforms: Sequence[tuple[str, Table]], where: str | None,
        loss_of: Callable[[str], str], requests: bool,
    ) -> None:
        self.problems: list[str] = []
        self._loss_of, self._columns = loss_of, dict(columns)
        self._event = next((name for name, column in columns if column.role == "event_time"), None)
        found = self._compiled(columns, transforms)
        filtering = None if where is None else self._condition(where)
        self.outputs: list[TransformColumn] = [
            each for one in found for each in one.columns if each.column.role != INPUT
        ]
        self._has_where = filtering is not None and not requests

        def is_used(column: Column) -> bool:
            return column.role != INPUT and not (requests and column.entry.in_requests != "decoded")

        ever = [*found, *([] if filtering is None else [filtering])]
        self.read_ever = {name for one in ever for name in one.reads}
        inputs = set(filtering.reads) if filtering is not None and self._has_where else set()
        self.steps: list[CompiledTransform] = [filtering] if filtering is not None and self._has_where else []
        for one in reversed(found):
            if any(is_used(each.column) or each.name in inputs for each in one.columns):
                self.steps.insert(0, one)
                inputs |= set(one.reads)
        self._leaves_out = self._has_where or (
            not requests and any(each.column.missing == SKIP for each in self.outputs)
        )
        read = {name for one in self.steps for name in one.reads}
        if self._leaves_out and self._event is not None:
            read.add(self._event)
        self.readings = [name for name, _ in columns if name in read]

    def _compiled(self, columns: Columns, transforms: Sequence[tuple[str, Table]]) -> list[CompiledTransform]:
        self._before = sources(columns)
        self._unreadable = {name: f"which is the {column.role}: {_NOT_READ[column.entry.in_requests]}"
                            for name, column in columns if name not in self._before}  # fmt: skip
        found = [each for name, column in columns for each in self._timed(name, column)]
        for name, table in transforms:
            try:
                compiled_transforms = compiled(name, table, self._before, self._unreadable, self._event)
            except TransformError as error:
                self.problems.append(f"transforms.{name}: {error}")
                continue
            found += compiled_transforms
            for use, output in ((one.use, output) for one in compiled_transforms for output in one.columns):
                if output.name in self._columns or output.name in self._before or output.name in self._unreadable:
                    self.problems.append(f"transforms.{name}: expected a name of its own, got {output.name!r} again")
                if output.feeds is None:
                    self._before[output.name] = output.source(use)
                else:
                    self._unreadable[output.name] = "which has state: the model makes it, behind all transforms without"
        return found

    def _timed(self, name: str, column: Column) -> list[CompiledTransform]:
        """Returns what puts the time beside a column with state: one compiled transform, or none."""
        stateful = column.entry.stateful(name, column)
        if stateful is None or "time" not in feeds(stateful):
            return []
        event = self._before.get(self._event or "")
        if event is None:
            self.problems.append(f'columns.{name}: vocabulary.evict: expected a column with role = "event_time" beside '
                                 "it, got none")  # fmt: skip
            return []
        return [beside(f"{name}.time", "time", event)]

    def _condition(self, where: str) -> CompiledTransform | None:
        try:
            return condition(where, self._before, self._unreadable)
        except TransformError as error:
            self.problems.append(f"records.where: {error}")
            return None

    def cell(self, name: str) -> dict[str, int]:
        """The native option `cell` of a column of the record, where transforms read it: its column of cells."""
        return {"cell": self.readings.index(name)} if name in self.readings else {}

    def native(self, first_output: int) -> dict[str, Any] | None:
        """Returns the steps as _native.DecodePlan takes them; None if there are none.

        `made_from`: the plan's column of the first made."""
        if not self.steps:
            return None
        numbers = {name: number for number, name in enumerate(self._columns)}
        cells = {name: number for number, name in enumerate(self.readings)}
        column_of = {output.name: first_output + number for number, output in enumerate(self.outputs)}
        steps, next_cell = [], len(cells)
        for one in self.steps:
            steps.append(self._step(one, cells, column_of))
            cells |= {output.name: next_cell + number for number, output in enumerate(one.columns)}
            next_cell += len(one.columns)
        event = self._event if self._leaves_out and self._event is not None else None
        rests_on = self._rests_on(self.steps[-1]) if self._has_where else set()
        return {
            "readings": [self._reading(name, numbers[name]) for name in self.readings],
            "steps": steps,
            "where": next_cell - 1 if self._has_where else -1,
            "where_columns": sorted(map(numbers.__getitem__, rests_on)),
            "event_cell": -1 if event is None else cells[event],
        }

    def _reading(self, name: str, number: int) -> dict[str, Any]:
        column = self._columns[name]
        kind = column.entry
        reading = {"column": number, "holds": kind.holds(column)}
        found = kind.read_stand_in(column, self._loss_of(name)) if column.has_stand_in else None
        return reading if found is None else {**reading, "stand_in": found}

    def _step(self, one: CompiledTransform, cells: dict[str, int], column_of: dict[str, int]) -> dict[str, Any]:
        given = [cells[name] for name in one.reads]
        results = []
        for output in one.columns:
            result: dict[str, Any] = {"holds": output.result.holds, "column": column_of.get(output.name)}
            found = stand_in(output, one, self._loss_of(output.name)) if output.column.has_stand_in else None
            results.append(result if found is None else {**result, "stand_in": found})
        options = one.entry.native_options(one.use)
        return {"transform": one.transform, "sources": given, "results": results, "options": options}

    def _rests_on(self, one: CompiledTransform) -> set[str]:
        """The columns of the record that a transform reads, itself or by way of others."""
        makers = {output.name: each for each in self.steps for output in each.columns}
        found: set[str] = set()
        at = [one]
        while at:
            for name in at.pop().reads:
                if name in self._columns:
                    found.add(name)
                elif makers[name] not in at:
                    at.append(makers[name])
        return found


def stand_in(output: TransformColumn, one: CompiledTransform, loss: str) -> Any:
    """Returns the value that later transforms read for a missing cell of a made column; None if they cannot."""
    column = output.column
    if output.is_bucket:
        return float(column.missing)
    found = column.entry.stand_in(column, loss)
    if output.result.holds == HASH:
        return _native.murmur3(str(found).encode(), hash_seed(output.name), one.use.hash_bits)
    if output.result.holds == TIME:
        return int(found)
    if isinstance(found, str) != (output.result.holds == TEXT):
        return None
    return found if isinstance(found, str) else column.entry.read_stand_in(column, loss)


