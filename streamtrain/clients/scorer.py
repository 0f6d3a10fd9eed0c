"""One snapshot made ready to predict: rows as programs hold them → answers as on the predictions topic."""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

from streamtrain import _native
from streamtrain.columns.forms import Columns, Names, is_columns, read
from streamtrain.columns.served import Served
from streamtrain.errors import RecordError, UserMistake

Errors = Literal["raise", "return"]
BATCH_ROWS = 256  # of the plan for many rows; one row has a plan of its own, which has no padding to compute
_FREE_WORK = 100_000  # multiplications from which on a batch gives up the GIL: about 5 µs, as long as a hand-over
_Failed = tuple[int, str, str]  # row, path, reason


class Scorer:
    """Predicts with one snapshot, which never changes. Any number of threads at once, a workspace for each."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.version, self.digest, self.created_ms = served.version, served.digest, served.manifest.created_ms
        schema = served.shape.schema
        self._names = Names.of(schema)
        weights = sum(block.count for block in served.shape.model.blocks if block.group == "parameters")
        self._free_from = max(1, _FREE_WORK // max(1, weights))
        self._one = deque([self._workspace(1)])
        self._many = deque([self._workspace(BATCH_ROWS)])

    def predict(self, rows: Any, errors: Errors | None = "raise") -> Any:
        """See LiveModel.predict; None: "raise" for one dict alone, "return" for many rows."""
        if errors not in ("raise", "return", None):
            raise UserMistake(f'predict: expected errors="raise" or errors="return", got {errors!r}')
        if type(rows) is dict:
            answer, failed = self._rows(self._one, 1, rows)
            if not failed:
                return answer
            if not is_columns(rows, self._names):
                return _outcome(errors or "raise", row_error(failed[0], alone=True))
        given = read(rows, self._names)
        if isinstance(given, dict):
            return self.predict(given, errors)
        answers, failed = self._columns(given) if isinstance(given, Columns) else self._rows(
            self._many, BATCH_ROWS, given
        )
        for each in failed:
            answers[each[0]] = _outcome(errors or "return", row_error(each, alone=False))
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
            return self._workspace(rows)

    def _workspace(self, rows: int) -> _native.RowScorer:
        return self.served.row_scorer(rows, self._free_from)


def _outcome(errors: Errors, error: RecordError) -> RecordError:
    if errors == "raise":
        raise error
    return error


def row_error(failed: _Failed, alone: bool) -> RecordError:
    row, path, reason = failed
    where = "row" if alone else f"row {row}"
    return RecordError(f"{where} at {path if alone and path else '$' + path.partition(']')[2]}: {reason}")
