"""Numbers as a snapshot's model sees them: standardised by the snapshot's statistics, to its bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamtrain import _native
from streamtrain.clients.snapshots import Snapshot
from streamtrain.columns.row_plan import Array, Lists, Part, Rows
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake


class _Scale(NamedTuple):
    """Of a column's elements: float32 [width]."""

    mean: Array
    scale: Array
    clip: Array


class Standardized:
    """What one snapshot makes of the numbers of a job's features."""

    def __init__(self, snapshot: Snapshot, schema: Schema, parts: list[Part]) -> None:
        """UserMistake where the snapshot is of other columns."""
        if Schema.from_dict(snapshot.manifest.schema).digest() != schema.digest():
            raise UserMistake(
                f"snapshot {snapshot.version}: expected one of the job's columns and transforms, got one of others; "
                "give a snapshot that this job file has trained"
            )
        chosen = {name for name, column in schema.every if column.role == "feature" and _is_chosen(column)}
        self._scales = {part.name: _scale(snapshot, part) for part in parts if part.name in chosen}

    def __call__(self, rows: Rows) -> Rows:
        """The same rows with those columns as float32 that the model is given."""
        found = {name: self._of(name, cells) if name in self._scales else cells for name, cells in rows.items()}
        return Rows(found, rows.count, rows.left_out, rows.filtered)

    def _of(self, name: str, cells: Array | Lists) -> Array:
        assert not isinstance(cells, Lists)
        scale = self._scales[name]
        mean, by, clip = (each if cells.ndim > 1 else each[0] for each in scale)
        made: Array = np.clip((cells - mean) * by, -clip, clip)
        return made


def _is_chosen(column: object) -> bool:
    return bool(getattr(column, "standardize", False))


def _scale(snapshot: Snapshot, part: Part) -> _Scale:
    """As native/kernels/standardize_scale.h has it."""
    moments = snapshot.statistics[f"standardize.{part.block.name}"][part.first : part.first + part.width]
    made = [np.zeros(part.width, np.float32) for _ in range(5)]
    chosen = np.ones(part.width, np.uint8)
    _native.call_kernel("standardize_scale", "", [part.width, np.ascontiguousarray(moments), chosen, *made])
    return _Scale(*made[:3])
