"""One snapshot made ready to predict: rows as programs hold them → answers as on the predictions topic."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.clients.rows import columns_of
from streamtrain.compute import snapshot as payload
from streamtrain.compute.model import Model, aligned
from streamtrain.errors import RecordError, SnapshotError, UserMistake
from streamtrain.kafka.chunks import Stored
from streamtrain.topics import predictions
from streamtrain.topics.snapshots import Manifest
from streamtrain.vectorize.schema import Schema

BATCH_ROWS = 256  # of the plan for many rows; one row has a plan of its own, which has no padding to compute


class _Bench:
    """A slot, what fills it and the plan that reads it, for up to `rows` rows at a time."""

    def __init__(self, schema: Schema, model: Model, state: Any, rows: int) -> None:
        self.rows = rows
        layout = _native.SlotLayout.make(rows, 1, schema.block_specs())
        self._decode = _native.DecodePlan(schema.native_columns(), schema.short_columns(), layout)
        self._filler = _native.RowFiller(self._decode)
        self._slot = aligned(layout.slot_bytes)
        self._address = int(self._slot.ctypes.data)
        self._plan = model.compile("cpu", layout, state, state[model.learned_bytes :], train=False)

    def score(self, rows: Any) -> tuple[Any, list[tuple[int, int, str, str, bool]]]:
        """Outputs (rows, width) that the next call overwrites, and the rows that could not be used."""
        _, used, _, _, _, _, dead, _ = self._filler.fill(rows, self._slot, 0, self.rows)
        if dead:
            return None, dead
        if used < self.rows:
            self._decode.clear_behind(self._slot, used)
        self._plan.step.rows = used
        self._plan.predict(self._address)
        output = self._plan.output()[:used]
        if not np.isfinite(output).all():
            row = int(np.flatnonzero(~np.isfinite(output).all(axis=1))[0])
            path = "$" if self.rows == 1 else f"$[{row}]"
            return None, [(row, row + 1, path, "the prediction is not finite", False)]
        return output, dead


class Scorer:
    """Predicts with one snapshot at a time; load() puts another of the same shape in its place. Thread-safe."""

    def __init__(self, manifest: Manifest) -> None:
        """Raises UserMistake or SnapshotError where the manifest's model is not one this program can build."""
        self._shape = _shape(manifest)
        schema = Schema.from_dict(manifest.schema).for_requests()
        self._classes = schema.class_names
        self._model = Model(manifest.model_spec)
        self._state = aligned(self._model.state_bytes)
        self._one = _Bench(schema, self._model, self._state, 1)
        self._many = _Bench(schema, self._model, self._state, BATCH_ROWS)
        self._lock = threading.Lock()
        self.version, self.digest, self.created_ms = 0, "", 0

    def fits(self, manifest: Manifest) -> bool:
        """Whether load() can take a snapshot of this manifest."""
        return _shape(manifest) == self._shape

    def load(self, stored: Stored) -> None:
        """Copies a snapshot's parameters and statistics in; SnapshotError, and no change, where they do not fit."""
        if not self.fits(stored.manifest):
            raise SnapshotError(f"snapshot {stored.manifest.version}: its columns or model are not those it is put in")
        with self._lock:
            payload.load(self._model, self._state, stored.model)
            self.version, self.digest = stored.manifest.version, stored.digest.hex()
            self.created_ms = stored.manifest.created_ms

    def predict(self, rows: Any) -> Any:
        """See LiveModel.predict."""
        if type(rows) is dict:
            with self._lock:
                output, dead = self._one.score(rows)
                if not dead:
                    return predictions.rows(output, self._classes)[0]
            if not any(_is_array(value) for value in rows.values()):
                raise _unusable(dead[0], None)
        listed = rows if type(rows) is list else _dicts(rows)
        if isinstance(listed, Mapping):
            return self.predict(dict(listed))
        return [answer for part in _parts(listed) for answer in self._batch(part[1], part[0])]

    def _batch(self, rows: list[Any], first: int) -> list[dict[str, Any]]:
        with self._lock:
            output, dead = self._many.score(rows)
            if not dead:
                return predictions.rows(output, self._classes)
        raise _unusable(dead[0], first)


def _shape(manifest: Manifest) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return manifest.model_spec, manifest.schema


def _parts(rows: Sequence[Any]) -> Iterator[tuple[int, list[Any]]]:
    """At most BATCH_ROWS rows at a time, with the number of the first."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UserMistake(f"rows[{number}]: expected a dict, got {type(row).__name__}")
    return ((at, list(rows[at : at + BATCH_ROWS])) for at in range(0, len(rows), BATCH_ROWS))


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) or (hasattr(value, "__array__") and hasattr(value, "__len__"))


def _dicts(rows: Any) -> list[dict[str, Any]] | dict[str, Any]:
    """Frames, dicts of arrays and other sequences as dicts."""
    columns, count, single = columns_of(rows)
    dicts = [{name: cells[at] for name, cells in columns.items()} for at in range(count)]
    return dicts[0] if single else dicts


def _unusable(dead: tuple[int, int, str, str, bool], first: int | None) -> RecordError:
    row_from, _, path, reason, _ = dead
    where = "row" if first is None else f"row {first + row_from}"
    path = path if first is None else "$" + path.partition("]")[2]
    return RecordError(f"{where} at {path}: {reason}")
