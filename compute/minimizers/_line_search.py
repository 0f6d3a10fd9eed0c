"""How far along a direction: by halving (Armijo 1966), or by slopes too (strong Wolfe: Nocedal, Wright: Numerical
optimization, 2006, algorithms 3.5 and 3.6), with Hager and Zhang's approximate condition (2005) where values differ by
no more than their rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from streamtrain.compute.minimizers._descent import Descent, Point, Vector, dot

ENOUGH = 1e-4       # of what the slope promises (c1)
MOST_TRIED = 20


def halved(
    descent: Descent, direction: Vector, first: float, project: Callable[[Vector], Vector] = lambda x: x
) -> Point | None:
    """The first place that is enough lower, of steps each half as long; None where there is none. `project`: onto
    where the direction's slopes hold."""
    at, slope = descent.at, descent.slope(descent.at)
    slack = descent.rounding * abs(at.value)
    length = first
    for _ in range(MOST_TRIED):
        x = project(at.x + length * direction)
        found = descent.look(x)
        promised = dot(slope, x - at.x)
        lowered = found.value - at.value
        if promised < 0 and lowered <= ENOUGH * promised:
            return found
        if promised < 0 and lowered <= slack and _steepness(descent, found) < _steepness(descent, at):
            return found   # no lower than rounding shows, and nearer to where the slope is 0
        length /= 2
    return None


def _steepness(descent: Descent, point: Point) -> float:
    slope = descent.slope(point)
    return dot(slope, slope)


@dataclass(frozen=True, eq=False)
class _Tried:
    length: float
    point: Point
    slope: float   # along the direction


class _Wolfe:
    """One search along a direction, of a slope below 0 at its start."""

    def __init__(self, descent: Descent, direction: Vector, flatness: float) -> None:
        self._descent, self._direction, self._flatness = descent, direction, flatness
        self._start = _Tried(0.0, descent.at, dot(descent.at.gradient, direction))
        self._slack = descent.rounding * abs(descent.at.value)
        self._left = MOST_TRIED

    def look(self, length: float) -> _Tried:
        self._left -= 1
        point = self._descent.look(self._descent.at.x + length * self._direction)
        return _Tried(length, point, dot(point.gradient, self._direction) if math.isfinite(point.value) else math.inf)

    def is_enough(self, tried: _Tried) -> bool:
        """It is that much lower; or no higher than rounding shows, and its slope says so."""
        promised = ENOUGH * tried.length * self._start.slope
        if tried.point.value <= self._start.point.value + promised:
            return True
        is_near = tried.point.value <= self._start.point.value + self._slack
        return is_near and tried.slope <= (2 * ENOUGH - 1) * self._start.slope

    def is_good(self, tried: _Tried) -> bool:
        return self.is_enough(tried) and abs(tried.slope) <= -self._flatness * self._start.slope

    def is_higher(self, tried: _Tried, than: _Tried) -> bool:
        return tried.point.value > than.point.value + self._slack

    def run(self, first: float) -> Point | None:
        before, length = self._start, first
        while self._left > 0:
            tried = self.look(length)
            if self.is_good(tried):
                return tried.point
            if not self.is_enough(tried) or (before.length > 0 and self.is_higher(tried, before)):
                return self._between(before, tried)
            if tried.slope >= 0:
                return self._between(tried, before)
            before, length = tried, 2 * length
        return before.point if before.length > 0 else None

    def _between(self, low: _Tried, high: _Tried) -> Point | None:
        """`low` is the lowest that is enough, and the slope there leads towards `high`."""
        while self._left > 0:
            tried = self.look(_inside(low, high))
            if self.is_good(tried):
                return tried.point
            if not self.is_enough(tried) or self.is_higher(tried, low):
                high = tried
            else:
                if tried.slope * (high.length - low.length) >= 0:
                    high = low
                low = tried
            if abs(high.length - low.length) <= 1e-12 * max(abs(high.length), abs(low.length)):
                break
        return low.point if low.length > 0 else None


def _inside(low: _Tried, high: _Tried) -> float:
    """Where a cubic through both is lowest (Nocedal, Wright: 3.59); the middle where that is none, or near an end."""
    span = high.length - low.length
    middle = low.length + span / 2
    if not (math.isfinite(high.point.value) and math.isfinite(high.slope)):
        return middle
    d1 = low.slope + high.slope - 3 * (low.point.value - high.point.value) / (low.length - high.length)
    square = d1 * d1 - low.slope * high.slope
    if square < 0:
        return middle
    d2 = math.copysign(math.sqrt(square), span)
    below = high.slope - low.slope + 2 * d2
    if below == 0:
        return middle
    found = high.length - span * (high.slope + d2 - d1) / below
    near, far = sorted((low.length + 0.1 * span, high.length - 0.1 * span))
    return found if near <= found <= far else middle


def wolfe(descent: Descent, direction: Vector, first: float, flatness: float = 0.9) -> Point | None:
    """A place that is enough lower, where the slope is at most `flatness` (c2) of that at the start; or, after so many
    looks, one that is enough lower. None where there is none."""
    search = _Wolfe(descent, direction, flatness)
    return search.run(first)
