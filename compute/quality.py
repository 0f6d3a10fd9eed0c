"""Progressive quality from the score counters of a state: in total, and over windows of rows.

Used by the coordinator, and by replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from streamtrain import _native
from streamtrain.compute.metrics import is_of_one_window, numbers, summary
from streamtrain.compute.moments import named
from streamtrain.compute.ops.vocabulary import HEAD
from streamtrain.compute.windows import SCORE, WINDOW, Scores

MOST_CLIPPED = 20  # columns reported
HELD_OUT = "held_out"  # figures of rows that are never trained, of a publication that was an evaluation
SPANS = ("total", "window", "after_averaging", HELD_OUT)  # of a publication's metrics: those that are figures of rows


class Quality:
    """Scores only grow: a window is the difference of two looks at them. `numbers`: the number columns in order."""

    def __init__(self, numbers: Sequence[str] = ()) -> None:
        self._numbers = numbers
        self._start: Scores = {}
        self._window: dict[str, Any] | None = None  # the newest that has closed

    def begin(self, state: Mapping[str, npt.NDArray[Any]], before: Mapping[str, Any]) -> None:
        """The state of a publication that is gone on from, and its metrics."""
        self._start = _scores(state, WINDOW)
        self._window = before.get("window") if state[_native.WINDOWS_CLOSED][0] else None

    def look(self, state: Mapping[str, npt.NDArray[Any]], closed: Sequence[Scores] = ()) -> dict[str, Any]:
        """{"total": …, "window": …}, each the fixed names of `compute.metrics` beside the constant prediction's;
        {"windows": …}, the numbers of each that has closed since the last look, by the scores at their ends; "window"
        is the newest, and before the first has closed that one as it grows; {"updates": …}, of a worker;
        {"clipped": …}, values the model saw cut, by column, the most of them; {"evicted": …}, values that lost their
        id, by vocabulary; {"rate_left": …}, of the learning rate, by a schedule that goes by more than the steps.
        """
        scores = all_rows = _scores(state)
        closed_before = _native.WINDOWS_CLOSED in state and state[_native.WINDOWS_CLOSED][0]
        if closed_before:  # the tally lacks the rows of closed windows
            all_rows = {name: array for name, array in scores.items() if not is_of_one_window(name)}
        windows = []
        for end in closed:
            self._window, self._start = _between(self._start, end), end
            windows.append(numbers(self._window))
        return {
            "total": summary(all_rows),
            "window": self._window or _between(self._start, scores),
            "windows": windows,
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
    """Returns how many values have lost their id, by the vocabulary's name. Vocabularies with none are absent."""
    heads = {name.partition(".")[2]: block[0] for name, block in state.items() if name.startswith("vocabulary.")}
    return {name: int(head[HEAD.index("evicted")]) for name, head in heads.items() if head[HEAD.index("evicted")]}


def _scores(state: Mapping[str, npt.NDArray[Any]], prefix: str = SCORE) -> Scores:
    return {
        SCORE + name.removeprefix(prefix): array.copy()
        for name, array in state.items()
        if name.startswith(prefix) and name != _native.WINDOWS_CLOSED
    }


def _between(begin: Scores, end: Scores) -> dict[str, Any]:
    window = {name: end[name] - array for name, array in begin.items() if not is_of_one_window(name)}
    return summary(window | {name: array for name, array in end.items() if is_of_one_window(name)})
