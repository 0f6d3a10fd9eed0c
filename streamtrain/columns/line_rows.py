"""Rows of records that are lines of text, to show them or to write them again: the native decoder reads the features;
label, weight and tag stay the texts that they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from streamtrain.columns.column import Column
from streamtrain.columns.formats import Format, line_head
from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.formats.sparse_text import FEATURES, LABEL, TAG, WEIGHT, features, names, text
from streamtrain.columns.kinds.category import MOST_BUCKETS
from streamtrain.columns.row_plan import LeftOut, RowPlan, Rows
from streamtrain.columns.schema import Schema
from streamtrain.compute.model_spec import MAX_ENTRIES

_BATCH_ROWS = 64
_MIN_ENTRIES = 128  # a slot has room for so many a row


class LineRows:
    """Reads such records. One thread at a time."""

    def __init__(self, format: Format, schema: Schema | None = None) -> None:
        """`schema`: its columns name the cells; without one they are label, weight, tag and features."""
        self._head = line_head(format)
        self._names = {part: part for part in (LABEL, WEIGHT)} if schema is None else names(schema)
        self._names |= {TAG: TAG} if schema is None or TAG in self._names else {}
        wide = {} if schema is None else features(schema)
        self._wide = {name: column.namespaces for name, column in wide.items()} or {FEATURES: None}
        self._format = format
        self._plans: dict[int, RowPlan] = {}  # by the most features of a line

    def read(self, record: bytes) -> tuple[list[Any], str | None]:
        """Returns the record's rows, and why it cannot be read. Each row is a dict, or an Unusable for a line that is
        none; features that cannot be read are an Unusable in their row."""
        dead: dict[int, LeftOut] = {}
        found: list[dict[str, Any]] = []
        lines = [line for piece in record.split(b"\n") if (line := piece.lstrip(b"\r"))]
        for batch in self._plan(lines).batches([record], copy=False):
            found += self._features(batch)
            dead |= {row: each for each in batch.left_out for row in range(each.row_from, each.row_to)}
        if 0 in dead and dead[0].path == "$":
            return [], dead[0].reason
        usable = iter(found)
        cells = [self._unusable(dead[row]) if row in dead else next(usable) for row in range(len(lines))]
        return [self._row(line.removesuffix(b"\r"), each) for line, each in zip(lines, cells, strict=True)], None

    def _plan(self, lines: list[bytes]) -> RowPlan:
        """Returns the plan of columns that take all indexes, and all features of the longest line."""
        most = 1 << (max(map(len, lines), default=0) // 2).bit_length()  # a feature takes two bytes
        most = min(max(most, _MIN_ENTRIES), MAX_ENTRIES)
        if most not in self._plans:
            wide = {"kind": "sparse", "buckets": MOST_BUCKETS, "most": most, "missing": 0}
            columns = {name: {**wide, "namespaces": spaces} for name, spaces in self._wide.items()}
            columns_of = tuple((name, Column.model_validate(column)) for name, column in columns.items())
            schema = Schema(columns_of, "mean_squared_error", requests=True)
            self._plans[most] = RowPlan(schema, self._format, self._format, _BATCH_ROWS)
        return self._plans[most]

    def _row(self, line: bytes, cells: dict[str, Any] | Unusable) -> Any:
        if isinstance(cells, Unusable):
            return cells
        head = {self._names[part]: text(word) for part, word in self._head(line) if part in self._names}
        return {**head, **cells}

    def _unusable(self, row: LeftOut) -> dict[str, Any] | Unusable:
        """Returns what stands for the features of a line that cannot be used."""
        name = row.path.partition("].")[2]
        return {name: Unusable(row.reason)} if name in self._wide else Unusable(row.reason)

    def _features(self, batch: Rows) -> Iterator[dict[str, Any]]:
        columns = [list(_pairs(batch[name], batch[f"{name}.scale"])) for name in self._wide]
        return (dict(zip(self._wide, cells, strict=True)) for cells in zip(*columns, strict=True))


def _pairs(indexes: Any, scales: Any) -> Iterator[list[list[Any]]]:
    """Yields each row's [index, value]; a value is the shortest number that is the decoder's float32."""
    values = scales.values.astype(str).astype(np.float64).tolist()
    pairs = [list(each) for each in zip(indexes.values.tolist(), values, strict=True)]
    return (pairs[start:end] for start, end in pairwise(indexes.offsets.tolist()))
