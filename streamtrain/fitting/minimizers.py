"""Minimizers of a window's objective: SciPy's L-BFGS-B and conjugate gradients, and gradient descent.

They share the settings in COMMON, count each evaluation, and end for the same reasons.
The objective takes parameters as float32: near the minimum steps change its value by no more than its rounding.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from streamtrain.compute.objective import Objective, Vector
from streamtrain.compute.options import Number, Option, Whole, problems, read
from streamtrain.errors import UserMistake
from streamtrain.registry import nearest

COMMON: dict[str, Option] = {
    "gradient_tolerance": Number(least=0, default=1e-6, help="ends where no part of the gradient is larger"),
    "value_tolerance": Number(
        least=0, default=1e-10, help="ends where two steps in a row lower the value by less, relative to it; 0: never"
    ),
    "iterations": Whole(least=1, most=1_000_000, default=1000, help="the most steps"),
    "evaluations": Whole(least=1, most=100_000_000, default=100_000, help="the most evaluations of the objective"),
}
ENOUGH, MAX_HALVINGS = 1e-4, 20  # Armijo's condition, and how often a step is halved for it
LONGEST = 1e10  # a step, in gradients


@dataclass(frozen=True)
class WindowStep:
    """One step: its number from 1, the evaluations so far, the loss after it, the largest part of the gradient there,
    the step's length, and the seconds since the first evaluation."""

    iteration: int
    evaluations: int
    loss: float
    gradient_norm: float
    step: float
    seconds: float

    def row(self) -> dict[str, Any]:
        """Returns the step as a row of the history's frame."""
        return asdict(self)


Callback = Callable[[WindowStep], str | None]


@dataclass(frozen=True, eq=False)
class Minimum:
    """The lowest point found. `reason` is one of gradient_tolerance, value_tolerance, iterations, evaluations,
    line_search, not_finite, callback; `details` has its figures."""

    x: Vector
    value: float
    gradient_norm: float
    evaluations: int
    reason: str
    details: str
    steps: list[WindowStep]


class Point(NamedTuple):
    """An evaluated x."""

    x: Vector
    value: float
    gradient: Vector

    @property
    def norm(self) -> float:
        return float(np.max(np.abs(self.gradient)))


class Ended(Exception):
    """The search is over: reason and details."""


class Search:
    """One search: the objective's evaluations, the steps, and the conditions that end it."""

    def __init__(self, objective: Objective, options: Mapping[str, Any], callback: Callback | None) -> None:
        self._objective, self._options, self._callback = objective, options, callback
        self._evaluations, self._small_steps, self._began_s = 0, 0, time.monotonic()
        self._steps: list[WindowStep] = []
        self._last = self.at = self._best = self.evaluate(objective.start())

    def evaluate(self, x: Vector) -> Point:
        """Returns the point at x. A value that is not finite is infinite, and so too high for every line search."""
        if self._evaluations >= self._options["evaluations"]:
            raise Ended("evaluations", f"after {self._evaluations} evaluations of the objective")
        self._evaluations += 1
        value, gradient = self._objective(x)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            value, gradient = math.inf, np.zeros_like(gradient)
        self._last = Point(x.copy(), value, gradient)
        return self._last

    def answer(self, x: Vector) -> tuple[float, Vector]:
        """Returns value and gradient at x, as SciPy takes them."""
        return self.evaluate(x)[1:]

    def stepped(self, x: Vector) -> None:
        """Books a step to x. Raises Ended where it was the last."""
        at = self._last if np.array_equal(self._last.x, x) else self.evaluate(x)
        before, self.at = self.at, at
        if at.value < self._best.value:
            self._best = at
        number = len(self._steps) + 1
        step = WindowStep(number, self._evaluations, at.value, at.norm, float(np.linalg.norm(at.x - before.x)),
                          time.monotonic() - self._began_s)  # fmt: skip
        self._steps.append(step)
        why = None if self._callback is None else self._callback(step)
        if why is not None:
            raise Ended("callback", str(why))
        self._end_at_gradient()
        lowered, least = before.value - at.value, self._options["value_tolerance"] * abs(at.value)
        self._small_steps = self._small_steps + 1 if lowered <= least and least > 0 else 0
        if self._small_steps >= 2:
            raise Ended("value_tolerance", f"two steps lowered {at.value:.10g} by at most {least:.3g} each")
        if number >= self._options["iterations"]:
            raise Ended("iterations", f"after {number} steps")

    def _end_at_gradient(self) -> None:
        if self.at.norm <= self._options["gradient_tolerance"]:
            raise Ended("gradient_tolerance", f"no part of the gradient is larger than {self.at.norm:.3g}")

    def run(self, method: Callable[[Search, Mapping[str, Any]], str]) -> Minimum:
        """Runs a method, which ends by Ended or returns why its line search found nothing lower."""
        try:
            if not math.isfinite(self.at.value):
                raise Ended("not_finite", "value or gradient are not finite at the start")
            self._end_at_gradient()
            message = method(self, self._options)
            smallest = self._objective.rounding * abs(self.at.value)
            if abs(self._last.value - self.at.value) <= smallest:
                rounding = f"steps lower {self.at.value:.10g} by less than its rounding {smallest:.3g}"
                raise Ended("value_tolerance", rounding)
            raise Ended("line_search", message)
        except Ended as ended:
            reason, details = ended.args
        best = self._best
        if self.at.value <= best.value + self._objective.rounding * abs(best.value):
            best = self.at  # as low as rounding shows, and the end of the search
        return Minimum(best.x, best.value, best.norm, self._evaluations, reason, details, self._steps)


def _scipy(method: str, options: Mapping[str, Any]) -> Callable[[Search, Mapping[str, Any]], str]:
    """Returns a run of one of scipy.optimize.minimize's methods, whose own conditions never end it."""

    def run(search: Search, settings: Mapping[str, Any]) -> str:
        from scipy.optimize import minimize  # the extra `window`

        given = {name: settings[own] if isinstance(own, str) else own for name, own in options.items()}
        found = minimize(
            search.answer, search.at.x, jac=True, method=method, callback=search.stepped,
            options={"gtol": 0.0, "maxiter": 2_000_000, **given},
        )  # fmt: skip
        return str(found.message)

    return run


def gradient_descent(search: Search, options: Mapping[str, Any]) -> str:
    """Steepest descent. The first length of each step follows the last change of the gradient (Barzilai, Borwein:
    Two-point step size gradient methods, 1988); it is halved until the value is low enough (Armijo 1966)."""
    at = search.at
    length = options["step"] / max(1.0, float(np.linalg.norm(at.gradient)))
    while True:
        square = float(at.gradient @ at.gradient)
        for _ in range(MAX_HALVINGS):
            found = search.evaluate(at.x - length * at.gradient)
            if found.value <= at.value - ENOUGH * length * square:
                break
            length /= 2
        else:
            return f"{MAX_HALVINGS} ever shorter steps found nothing lower"
        moved, bent = found.x - at.x, found.gradient - at.gradient
        curved = float(moved @ bent)
        length = min(float(moved @ moved) / curved, LONGEST) if curved > 0 else 2 * length
        search.stepped(found.x)
        at = found


class Minimizer(NamedTuple):
    """A method with its own settings."""

    run: Callable[[Search, Mapping[str, Any]], str]
    own: dict[str, Option]


MINIMIZERS: dict[str, Minimizer] = {
    "lbfgs": Minimizer(
        _scipy("L-BFGS-B", {"maxcor": "pairs", "ftol": 0.0, "maxfun": 200_000_000}),
        {"pairs": Whole(least=1, most=100, default=10, help="the last steps that give the second derivatives")},
    ),
    "conjugate_gradient": Minimizer(_scipy("CG", {}), {}),
    "gradient_descent": Minimizer(
        gradient_descent, {"step": Number(above=0, default=1.0, help="length of the first step tried")}
    ),
}


def check(name: str, settings: Mapping[str, Any]) -> None:
    """Raises UserMistake for an unknown minimizer or setting, and for a missing SciPy."""
    if name not in MINIMIZERS:
        near = nearest(name, MINIMIZERS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise UserMistake(f"optimizer: expected one of {', '.join(MINIMIZERS)}, got {name!r}{hint}")
    for problem in problems(settings, options(name), f"setting of {name}"):
        raise UserMistake(f"{name}: {problem.name}: {problem}")
    if name != "gradient_descent" and find_spec("scipy") is None:
        raise UserMistake(f"{name}: expected SciPy: pip install 'streamtrain[window]'")


def options(name: str) -> dict[str, Option]:
    """Returns all settings of a minimizer."""
    return {**MINIMIZERS[name].own, **COMMON}


def minimize(objective: Objective, name: str, settings: Mapping[str, Any], callback: Callback | None) -> Minimum:
    """Searches for the objective's lowest value from its start on, and raises what `callback` raises."""
    return Search(objective, read(settings, options(name)), callback).run(MINIMIZERS[name].run)
