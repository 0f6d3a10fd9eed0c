"""What the last steps tell of the second derivatives: the two loops of L-BFGS (Nocedal, Wright: Numerical
optimization, 2006, algorithm 7.4)."""

from __future__ import annotations

from collections import deque

from streamtrain.compute.minimizers._descent import Point, Vector, dot

_LEAST = 1e-10   # of |s| |y|: less says nothing of a curvature


class Curvature:
    """Of the last `pairs` steps."""

    def __init__(self, pairs: int) -> None:
        self._pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=pairs)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def forget(self) -> None:
        self._pairs.clear()

    def note(self, before: Point, after: Point) -> None:
        moved, bent = after.x - before.x, after.gradient - before.gradient
        curved = dot(moved, bent)
        if curved > _LEAST * (dot(moved, moved) * dot(bent, bent)) ** 0.5:
            self._pairs.append((moved, bent, curved))

    def times(self, gradient: Vector) -> Vector:
        """The inverse of the second derivatives, times a gradient."""
        found = gradient.copy()
        factors = []
        for moved, bent, curved in reversed(self._pairs):
            factors.append(dot(moved, found) / curved)
            found -= factors[-1] * bent
        if self._pairs:
            _, bent, curved = self._pairs[-1]
            found *= curved / dot(bent, bent)
        for (moved, bent, curved), factor in zip(self._pairs, reversed(factors), strict=True):
            found += (factor - dot(bent, found) / curved) * moved
        return found
