"""A scorer whose model gives back what a request holds: its number columns are the outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from slots import slot_views

from streamtrain import _native
from streamtrain.columns.schema import Schema
from streamtrain.compute.state import view

_SLOT_ROWS = 4  # fewer than some requests have


def echo_plan(schema: Schema, overflow: float = 1e38) -> tuple[_native.Plan, _native.SlotLayout]:
    """A plan whose outputs are the number columns; values above `overflow` become infinity."""
    layout = _native.SlotLayout.make(_SLOT_ROWS, 1, schema.block_specs())

    def predict(slot: int) -> None:
        numbers = slot_views(layout, view(slot, layout.slot_bytes))["numbers"]
        outputs = plan.output()
        outputs[:] = np.where(numbers > overflow, np.inf, numbers)[: len(outputs)]

    def never(*_: Any) -> None:
        raise AssertionError

    plan = _native.ForeignPlan(_SLOT_ROWS, len(schema.numbers), {"predict": predict}, never, never)
    return plan, layout


def echo_scorer(
    columns: dict[str, Any],
    classes: list[str],
    format_name: str = "json",
    requests: bool = True,
    overflow: float = 1e38,
    heads: list[tuple[str, int, list[str]]] | None = None,
) -> _native.RequestScorer:
    """`columns` has as many numbers as the answers have outputs; `heads`: several, in the place of one of `classes`.
    Without `requests` a row may be left out. Values above `overflow` become infinity."""
    schema = Schema.from_columns({**columns, "y": {"role": "label", "missing": 0}}, "mean_squared_error")
    if requests:
        schema = schema.for_requests()
    plan, layout = echo_plan(schema, overflow)
    outputs = [(name, width, names, not names) for name, width, names in heads or [("", plan.width, classes)]]
    return _native.RequestScorer(plan, schema.native_plan(layout), format_name, outputs, 12, "ab" * 32)
