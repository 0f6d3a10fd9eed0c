"""Judges what is about to be published: by its window, or by rows held out, and where early stopping stands with it.

Used by the coordinator, in the thread that publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from streamtrain.columns.row_cache import RowCache
from streamtrain.compute.early_stopping import NAME
from streamtrain.compute.evaluator import Evaluator
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.quality import HELD_OUT
from streamtrain.compute.snapshot import load, model_payload
from streamtrain.compute.state import Layout
from streamtrain.job.early_stop import EarlyStop


class Judging:
    """The early stopping decisions of one run, which ends (`has_end`) or goes on for ever. `layout` is the layout of
    the states it gets. With a validation set it keeps a state of the model alone."""

    def __init__(
        self, early_stop: EarlyStop, model: Model, layout: Layout, has_end: bool, validation_set: RowCache | None = None
    ) -> None:
        self.has_end = has_end
        self._early_stop, self._model, self._layout, self._validation_set = early_stop, model, layout, validation_set
        self._state = aligned(model.state_bytes if validation_set is not None else 0)

    def why(self, metrics: Mapping[str, Any]) -> str:
        """Why training has ended with a publication of those metrics; "" where it goes on."""
        return self._early_stop.why(metrics)

    def note(
        self,
        metrics: dict[str, Any],
        before: Mapping[str, Any],
        state: npt.NDArray[Any],
        *,
        version: int,
        rows: int,
        created_ms: int,
        passes: int,
    ) -> None:
        """Puts into the metrics of a publication, which follows one of the metrics `before`, what it is judged by and
        where early stopping stands with it."""
        if self._validation_set is not None and self._early_stop.is_due(metrics, passes):
            metrics[HELD_OUT] = self._figures(self._validation_set, state)
        metrics[NAME] = self._early_stop.after(before, metrics, version, rows, created_ms, passes)

    def _figures(self, validation_set: RowCache, state: npt.NDArray[Any]) -> dict[str, Any]:
        load(self._model.layout, self._state, model_payload(self._layout, state))
        return validation_set.judge(Evaluator(self._model, validation_set.layout, self._state))
