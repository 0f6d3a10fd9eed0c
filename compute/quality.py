"""Progressive quality from the score counters of a state: in total, and over the last window of rows.

Used by the coordinator, and by replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from streamtrain import _native
from streamtrain.compute.metrics import summary
from streamtrain.compute.moments import named
from streamtrain.compute.ops.vocabulary import HEAD

Scores = dict[str, npt.NDArray[Any]]
WINDOW_ROWS = 10_000  # a window closes at the first look after so many rows; the first is shown as it grows
MOST_CLIPPED = 20  # columns told of
HELD_OUT = "held_out"  # figures of rows that are never trained, of a publication that was an evaluation
SPANS = ("total", "window", "after_averaging", HELD_OUT)  # of a publication's metrics: those that are figures of rows


def closed(window: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    """Whether a publication's window is one that has closed since `before`, that of the publication before it: told
    once, and not as it grows."""
    return window.get("rows", 0) >= WINDOW_ROWS and window != before


class Quality:
    """Scores only grow: a window is the difference of two looks at them. `numbers`: the number columns in order."""

    def __init__(self, numbers: Sequence[str] = ()) -> None:
        self._numbers = numbers
        self._window_start: Scores = {}
        self._window: dict[str, Any] | None = None

    def begin(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """The state the run starts from."""
        self._window_start = _scores(state)

    def look(self, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
        """{"total": …, "window": …}, each the fixed names of `compute.metrics` beside the constant prediction's;
        {"updates": …}, of a worker; {"clipped": …}, values the model saw cut, by column, the most of them;
        {"evicted": …}, values that lost their id, by vocabulary; {"rate_left": …}, of the learning rate, by a schedule
        that goes by more than the steps.
        """
        scores = _scores(state)
        window = {name: scores[name] - self._window_start[name] for name in scores}
        rows = _rows(window)
        if rows >= WINDOW_ROWS or self._window is None or self._window["rows"] < WINDOW_ROWS:
            self._window = summary(window)
        if rows >= WINDOW_ROWS:
            self._window_start = scores
        return {
            "total": summary(scores),
            "window": self._window,
            "updates": int(state["optimizer.steps"].reshape(-1)[0]),
            "clipped": self._clipped(state),
            "evicted": evicted(state),
            **rate_left(state),
        }

    def _clipped(self, state: Mapping[str, npt.NDArray[Any]]) -> dict[str, int]:
        if "standardize.numbers" not in state:
            return {}
        counts = named(state["standardize.numbers"])["clipped"].astype(int).tolist()
        found = sorted(zip(counts, self._numbers, strict=True), key=lambda pair: (-pair[0], pair[1]))
        return {name: count for count, name in found[:MOST_CLIPPED] if count}


def rate_left(state: Mapping[str, npt.NDArray[Any]]) -> dict[str, float]:
    """{"rate_left": …} where a schedule's standing is in the state."""
    standing = state.get(_native.SCHEDULE_STANDING)
    return {} if standing is None else {"rate_left": float(standing.reshape(-1)[0])}


def evicted(state: Mapping[str, npt.NDArray[Any]]) -> dict[str, int]:
    """How many values have lost their id, by the vocabulary's name."""
    heads = {name.partition(".")[2]: block[0] for name, block in state.items() if name.startswith("vocabulary.")}
    return {name: int(head[HEAD.index("evicted")]) for name, head in heads.items() if head[HEAD.index("evicted")]}


def _scores(state: Mapping[str, npt.NDArray[Any]]) -> Scores:
    return {name: array.copy() for name, array in state.items() if name.startswith("score.")}


def _rows(scores: Scores) -> int:
    return int(scores["score.rows"].reshape(-1)[0])
