"""The points that are drawn for one job over time: publications, and samples of what no topic keeps.

Bounded in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_POINTS = 8_000  # of each kind; beyond, every other of the older half goes


@dataclass(frozen=True, slots=True)
class Point:
    """Figures at a time (Unix, ms). `rows`: learned in total by then; -1 where that is not known."""

    number: int  # of its series, rising
    at_ms: int
    rows: int
    figures: Mapping[str, float]


class Points:
    """A series of points in the order of time; any thread may read."""

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._points: list[Point] = []
        self._next = 0
        self.sampled = False  # some are left out

    def keep(self, most: int) -> None:
        """Holds so many at most from now on; thins what there is until it fits."""
        with self._lock:
            self._most = most
            while len(self._points) > most:
                self._thin(len(self._points) // 2)

    def add(self, at_ms: int, rows: int, figures: Mapping[str, float]) -> None:
        with self._lock:
            self._points.append(Point(self._next, at_ms, rows, figures))
            self._next += 1
            if len(self._points) > self._most:
                self._thin(self._most // 2)

    def _thin(self, oldest: int) -> None:
        self._points[:oldest] = self._points[:oldest:2]
        self.sampled = True

    def put_before(self, points: Iterable[tuple[int, int, Mapping[str, float]]]) -> None:
        """Older ones, some of many, in front of what is there. Who has drawn the series draws it anew."""
        with self._lock:
            found = [*points, *((point.at_ms, point.rows, point.figures) for point in self._points)]
            self._points = [Point(self._next + at, *point) for at, point in enumerate(found)]
            self._next += len(found)
            self.sampled = True

    def clear(self) -> None:
        with self._lock:
            self._points.clear()
            self.sampled = False

    def after(self, number: int) -> list[Point]:
        """Returns the points with a higher number. Returns all points if older ones were put in front since."""
        with self._lock:
            if self._points and number < self._points[0].number:
                return list(self._points)
            return [point for point in self._points if point.number > number]

    @property
    def last(self) -> Point | None:
        with self._lock:
            return self._points[-1] if self._points else None

    def __len__(self) -> int:
        return len(self._points)


def thinned(x: Sequence[float], y: Sequence[float], most: int) -> NDArray[np.int64]:
    """Which of the points to draw: at most about `most`, the first, the last, and of each of equal stretches of them
    the lowest and the highest, so that no peak is lost."""
    values = np.asarray(y, np.float64)
    if len(x) <= most:
        return np.arange(len(x))
    kept = {0, len(x) - 1}
    for part in np.array_split(np.arange(len(x)), max(1, most // 2)):
        own = values[part]
        if np.isfinite(own).any():
            kept |= {int(part[np.nanargmin(own)]), int(part[np.nanargmax(own)])}
    return np.array(sorted(kept))
