"""A job's newest snapshot as HTTP asks it: bodies of JSON and columns, answered by one snapshot each."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain._native import BodyForm
from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.scorer import BATCH_ROWS, Scorer, row_error
from streamtrain.columns.served import Served
from streamtrain.compute.torch import TorchModule
from streamtrain.serving.config import ServedJob
from streamtrain.serving.envelope import unwrapped

_ONE_ROW_BYTES = 4_096  # an object of at most so many is taken for one row, which has a plan of its own
_QUICK_WORK = 128_000  # bytes of a body of a small model: 0.2 ms, as long as others may wait for it
_SMALL_WEIGHTS = 20_000  # multiplications of a row that take about as long as its text


class BodyAnswer(NamedTuple):
    """The JSON of a body's answer; see _native.BodyScorer."""

    text: bytes
    form: BodyForm
    rows: int
    errors: int


class HttpScorer(Scorer):
    """One snapshot, as Scorer; also what its answers say of it."""

    def __init__(self, served: Served, answer_bytes: int) -> None:
        super().__init__(served)
        self._answer_bytes = answer_bytes
        self._bodies = {rows: deque([self._body_workspace(rows)]) for rows in (1, BATCH_ROWS)}
        self._cost = 1 + sum(b.count for b in served.shape.model.blocks if b.group == "parameters") // _SMALL_WEIGHTS
        self.lineage = (
            f'"version":{self.version},"digest":"{self.digest}","run":{served.manifest.run.number},'
            f'"lineage":"{served.manifest.lineage}","age_s":'
        )

    def is_quick(self, size: int) -> bool:
        """Returns True if answering a body of `size` bytes is quicker than handing it to another thread."""
        return size * self._cost <= _QUICK_WORK

    def answer_body(self, body: bytes, released: bool) -> BodyAnswer:
        """Rows in JSON, or in an envelope (envelope.py); `released`: other threads go on meanwhile. Raises Refusal for
        an envelope without rows."""
        body = unwrapped(body, self.served.shape.schema)
        rows = 1 if len(body) <= _ONE_ROW_BYTES and body.lstrip()[:1] == b"{" else BATCH_ROWS
        pool = self._bodies[rows]
        try:
            workspace = pool.pop()
        except IndexError:  # as many at once as never before
            workspace = self._body_workspace(rows)
        try:
            return BodyAnswer(*workspace.score(body, released))
        finally:
            pool.append(workspace)

    def outputs(self, columns: dict[str, Any]) -> NDArray[np.float32]:
        """(rows, outputs). Raises RecordError for the first row that cannot be predicted."""
        workspace = self._take(self._many, BATCH_ROWS)
        try:
            values, failed = workspace.outputs_of_columns(columns)
        finally:
            self._many.append(workspace)
        if failed:
            raise row_error(failed[0], alone=False)
        width = sum(outputs for _, outputs, *_ in self.served.shape.heads)
        return np.frombuffer(values, np.float64).astype(np.float32).reshape(-1, width)

    def _body_workspace(self, rows: int) -> _native.BodyScorer:
        return self.served.body_scorer(rows, self._answer_bytes)


class HttpModel(LiveModel):
    """A job that is served."""

    def __init__(self, job: ServedJob, answer_bytes: int) -> None:
        self._answer_bytes = answer_bytes
        network = TorchModule.from_dict(job.module) if job.module else None
        super().__init__(job.name, job.bootstrap, job.kafka, module=network, version=job.version)

    def _scorer_of(self, served: Served) -> HttpScorer:
        return HttpScorer(served, self._answer_bytes)

    @property
    def scorer(self) -> HttpScorer | None:
        """Returns the scorer that answers all rows of a request, from the first to the last.

        None before the first trained snapshot.
        """
        assert self._scorer is None or isinstance(self._scorer, HttpScorer)
        return self._scorer

    @property
    def waits_for(self) -> str | None:
        """Returns what the model waits for before it is ready, or its error; None if it is ready."""
        if self.ready:
            return None
        if self.error is not None:
            return str(self.error)
        if not self.connected:
            return f"an answer from Kafka at {self.bootstrap}"
        return f"a trained snapshot in {self.job}.snapshots at {self.bootstrap} (streamtrain train)"
