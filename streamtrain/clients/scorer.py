"""One snapshot made ready to predict: rows as programs hold them → answers as on the predictions topic."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from streamtrain import _native
from streamtrain.clients.forms import Columns, is_columns, read
from streamtrain.columns.schema import Schema
from streamtrain.columns.served import schema_and_model
from streamtrain.compute import snapshot as payload
from streamtrain.compute.model import aligned
from streamtrain.errors import RecordError, SnapshotError, UserMistake
from streamtrain.kafka.chunks import Stored
from streamtrain.topics.manifest import Manifest

Errors = Literal["raise", "return"]
BATCH_ROWS = 256  # of the plan for many rows; one row has a plan of its own, which has no padding to compute
_FREE_WORK = 100_000  # multiplications from which on a batch gives up the GIL: about 5 µs, as long as a hand-over
_Failed = tuple[int, str, str]  # row, path, reason


class Shape:
    """What the snapshots of one model and schema have in common. Read-only, shared by their scorers."""

    def __init__(self, manifest: Manifest) -> None:
        """Raises SnapshotError where the manifest holds no model that this program can build."""
        self.model_spec, self.schema = manifest.model_spec, manifest.schema
        columns, self.model = schema_and_model(manifest)
        schema = columns.for_requests()
        self.names = schema.decoded_names
        self.classes = schema.class_names
        weights = sum(block.count for block in self.model.blocks if block.group == "parameters")
        self.free_from = max(1, _FREE_WORK // max(1, weights))
        self._plans = {rows: _decode_plan(schema, rows) for rows in (1, BATCH_ROWS)}

    def fits(self, manifest: Manifest) -> bool:
        """Whether a scorer of this shape can hold the manifest's snapshot."""
        return manifest.model_spec == self.model_spec and manifest.schema == self.schema

    def row_scorer(self, state: Any, rows: int) -> _native.RowScorer:
        """A workspace for up to `rows` rows at a time over a model's state."""
        decode = self._plans[rows]
        plan = self.model.compile("cpu", decode.layout, state, state[self.model.learned_bytes :], train=False)
        return _native.RowScorer(plan, decode, self.classes, self.free_from)


class Scorer:
    """Predicts with one snapshot, which never changes. Any number of threads at once, a workspace for each."""

    def __init__(self, stored: Stored, shape: Shape | None = None) -> None:
        """`shape`: an earlier snapshot's. Raises UserMistake or SnapshotError for what it cannot be made of."""
        manifest = stored.manifest
        if shape is not None and not shape.fits(manifest):
            raise SnapshotError(f"snapshot {manifest.version}: its columns or model are not those it is put in")
        self.shape = Shape(manifest) if shape is None else shape
        self.version, self.digest, self.created_ms = manifest.version, stored.digest.hex(), manifest.created_ms
        self._state = aligned(self.shape.model.state_bytes)
        payload.load(self.shape.model.layout, self._state, stored.model)
        self._state.flags.writeable = False
        self._one = deque([self.shape.row_scorer(self._state, 1)])
        self._many = deque([self.shape.row_scorer(self._state, BATCH_ROWS)])

    def predict(self, rows: Any, errors: Errors = "raise") -> Any:
        """See LiveModel.predict."""
        if errors != "raise" and errors != "return":
            raise UserMistake(f'predict: expected errors="raise" or errors="return", got {errors!r}')
        if type(rows) is dict:
            answer, failed = self._rows(self._one, 1, rows)
            if not failed:
                return answer
            if not is_columns(rows, self.shape.names):
                return _outcome(errors, _error(failed[0], alone=True))
        given = read(rows, self.shape.names)
        if isinstance(given, dict):
            return self.predict(given, errors)
        answers, failed = self._columns(given) if isinstance(given, Columns) else self._rows(
            self._many, BATCH_ROWS, given
        )
        for each in failed:
            answers[each[0]] = _outcome(errors, _error(each, alone=False))
        return answers

    def _rows(self, pool: deque[_native.RowScorer], rows: int, given: Any) -> tuple[Any, list[_Failed]]:
        workspace = self._take(pool, rows)
        try:
            return workspace.score_rows(given)
        finally:
            pool.append(workspace)

    def _columns(self, given: Columns) -> tuple[list[Any], list[_Failed]]:
        """Times are no numbers to a model: as objects they are refused by name."""
        named = {name: list(cells) if not isinstance(cells, list) and cells.dtype.kind == "M" else cells
                 for name, cells in given.named.items()}  # fmt: skip
        if not named and given.rows:  # a frame without any of the columns
            return self._rows(self._many, BATCH_ROWS, [{}] * given.rows)
        workspace = self._take(self._many, BATCH_ROWS)
        try:
            return workspace.score_columns(named)
        finally:
            self._many.append(workspace)

    def _take(self, pool: deque[_native.RowScorer], rows: int) -> _native.RowScorer:
        try:
            return pool.pop()
        except IndexError:  # as many threads at once as never before
            return self.shape.row_scorer(self._state, rows)


def _decode_plan(schema: Schema, rows: int) -> _native.DecodePlan:
    layout = _native.SlotLayout.make(rows, 1, schema.block_specs())
    return _native.DecodePlan(schema.native_columns(), schema.short_columns(), layout)


def _outcome(errors: Errors, error: RecordError) -> RecordError:
    if errors == "raise":
        raise error
    return error


def _error(failed: _Failed, alone: bool) -> RecordError:
    row, path, reason = failed
    where = "row" if alone else f"row {row}"
    return RecordError(f"{where} at {path if alone and path else '$' + path.partition(']')[2]}: {reason}")
