"""A search for the least value of a function, step by step: what all minimizers have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain.compute.options import Number, Option, Whole
from streamtrain.errors import UserMistake

Vector = NDArray[np.float64]
Function = Callable[[Vector], tuple[float, Any]]

COMMON: dict[str, Option] = {
    "gradient_tolerance": Number(least=0, default=1e-6, help="it ends where no part of the gradient is larger"),
    "value_tolerance": Number(
        least=0, default=1e-10, help="it ends where two steps in a row have lowered the value by less, relative to it; "
        "0: never"
    ),
    "iterations": Whole(least=1, most=1_000_000, default=1000, help="the most steps"),
    "evaluations": Whole(least=1, most=100_000_000, default=100_000, help="the most looks at the function"),
}


@dataclass(frozen=True, eq=False)
class Point:
    """A place, the function's value there with l1 in it, and its gradient without."""

    x: Vector
    value: float
    gradient: Vector

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.value) and bool(np.isfinite(self.gradient).all())


@dataclass(frozen=True)
class Iteration:
    """Where a step has led: its number from 1, the looks at the function so far, the value, the largest part of the
    gradient, and how far the step went."""

    iteration: int
    evaluations: int
    value: float
    gradient_norm: float
    step: float

    def negative(self) -> Iteration:
        return replace(self, value=-self.value)


Told = Callable[[Iteration], str | None]


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a search has ended, or where it was lower, if it was. `reason` is one of gradient_tolerance,
    value_tolerance, iterations, evaluations, line_search, not_finite, callback; `details` its figures."""

    x: Vector
    value: float
    gradient: Vector
    gradient_norm: float
    evaluations: int
    reason: str
    details: str
    history: tuple[Iteration, ...]

    @property
    def iterations(self) -> int:
        return len(self.history)

    @property
    def converged(self) -> bool:
        """It ended because it was there."""
        return self.reason in ("gradient_tolerance", "value_tolerance")

    def negative(self) -> Minimum:
        history = tuple(each.negative() for each in self.history)
        return replace(self, value=-self.value, gradient=-self.gradient, history=history)


class Negative:
    """A function upside down."""

    def __init__(self, function: Any) -> None:
        self._function = function
        for name in ("rounding", "l1", "batches"):
            if hasattr(function, name):
                setattr(self, name, getattr(function, name))

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        return self._upside_down(x, self._function(x))

    def of_batch(self, at: int, x: Vector) -> tuple[float, Vector]:
        return self._upside_down(x, self._function.of_batch(at, x))

    @staticmethod
    def _upside_down(x: Vector, answer: Any) -> tuple[float, Vector]:
        value, gradient = checked(x, answer)
        return -value, -gradient


def checked(x: Vector, answer: Any) -> tuple[float, Vector]:
    """A function's answer at x. UserMistake where it is no value with a gradient."""
    expected = f"function: expected a value and a gradient of {len(x)} numbers"
    try:
        value, given = answer
        number, gradient = float(value), np.array(given, np.float64)
    except (TypeError, ValueError):
        raise UserMistake(f"{expected}, got {answer!r:.80}") from None
    if gradient.shape != x.shape:
        raise UserMistake(f"{expected}, got a gradient of {list(gradient.shape)}")
    return number, gradient


class Ended(Exception):
    """The search is over: reason and details."""


def dot(a: Vector, b: Vector) -> float:
    """In an order that no processor changes, as a BLAS's does."""
    return float(np.add.reduce(a * b))


class Descent:
    """One search: where it is, and when it is to end."""

    def __init__(self, function: Any, start: Vector, options: Mapping[str, Any], callback: Told | None) -> None:
        self._function, self._options, self._callback = function, options, callback
        self.l1: Vector = np.zeros(len(start)) + getattr(function, "l1", 0.0)
        self.rounding = float(getattr(function, "rounding", 1e-15))
        self.batches = int(getattr(function, "batches", 0))
        self.evaluations = 0
        self._history: list[Iteration] = []
        self._small_steps = 0
        self.at = self._best = Point(start, math.inf, np.zeros(len(start)))

    def look(self, x: Vector) -> Point:
        """The function at x; its value is infinite where it is not finite."""
        self._count()
        point = self._point(x, self._function(x))
        return point if point.is_finite else replace(point, value=math.inf)

    def look_at_batch(self, number: int, x: Vector) -> Point:
        """The function of one batch. A look at all of them counts once."""
        if not self.batches:
            return self.look(x)
        if number == 0:
            self._count()
        return self._point(x, self._function.of_batch(number, x))

    def _count(self) -> None:
        if self.evaluations >= self._options["evaluations"]:
            raise Ended("evaluations", f"{self.evaluations} looks at the function are done")
        self.evaluations += 1

    def _point(self, x: Vector, answer: Any) -> Point:
        value, gradient = checked(x, answer)
        penalty = float(np.add.reduce(self.l1 * np.abs(x))) if self.l1.any() else 0.0
        return Point(x, value + penalty, gradient)

    def slope(self, point: Point) -> Vector:
        """The gradient, and with an l1 the pseudo-gradient (Andrew, Gao: 2007): the one-sided slope that is nearest
        to 0."""
        if not self.l1.any():
            return point.gradient
        right, left = point.gradient + self.l1, point.gradient - self.l1
        at_zero = np.where(left > 0, left, np.where(right < 0, right, 0.0))
        return np.where(point.x > 0, right, np.where(point.x < 0, left, at_zero))

    def norm(self, point: Point) -> float:
        return float(np.max(np.abs(self.slope(point))))

    def begin(self) -> Point:
        """Looks at the start. Ended where nothing can be done there."""
        self.at = self.look(self.at.x)
        if not math.isfinite(self.at.value):
            raise Ended("not_finite", "value or gradient are not finite at the start")
        self._best = self.at
        self._end_at_tolerance()
        return self.at

    def move(self, to: Point) -> Point:
        """A step is done. Ended where it was the last."""
        before, self.at = self.at, to
        if to.value < self._best.value:
            self._best = to
        step = float(np.sqrt(dot(to.x - before.x, to.x - before.x)))
        told = Iteration(len(self._history) + 1, self.evaluations, to.value, self.norm(to), step)
        self._history.append(told)
        why = None if self._callback is None else self._callback(told)
        if why is not None:
            raise Ended("callback", str(why))
        if not to.is_finite:
            raise Ended("not_finite", f"after {told.iteration} steps; the lowest place before it is kept")
        self._end_at_tolerance()
        lowered, least = before.value - to.value, self._options["value_tolerance"] * max(abs(to.value), 1e-300)
        self._small_steps = self._small_steps + 1 if lowered <= least and least > 0 else 0
        if self._small_steps >= 2:
            raise Ended("value_tolerance", f"two steps have lowered {to.value:.10g} by at most {least:.3g} each")
        if told.iteration >= self._options["iterations"]:
            raise Ended("iterations", f"{told.iteration} steps are done")
        return to

    def _end_at_tolerance(self) -> None:
        norm, least = self.norm(self.at), self._options["gradient_tolerance"]
        if norm <= least:
            raise Ended("gradient_tolerance", f"no part of the gradient is larger than {norm:.3g}")

    def outcome(self, run: Callable[[], None]) -> Minimum:
        """What a minimizer's run leads to."""
        try:
            run()
        except Ended as ended:
            reason, details = ended.args
        best = self._best
        if self.at.value <= best.value + self.rounding * abs(best.value):
            best = self.at   # as low as rounding shows, and where the search has ended
        return Minimum(best.x, best.value, self.slope(best), self.norm(best), self.evaluations, reason, details,
                       tuple(self._history))  # fmt: skip


def no_lower(tried: int) -> Ended:
    return Ended("line_search", f"{tried} looks along the way have found nothing lower that the values' rounding shows")
