"""Every minimizer on functions whose minimum is known, and why each ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over
from numpy.typing import NDArray
from scipy.optimize import rosen, rosen_der

from streamtrain.compute import minimizers
from streamtrain.compute.minimizers import Iteration, maximize, minimize
from streamtrain.errors import UserMistake

Vector = NDArray[np.float64]
NAMES = minimizers.names()
WHOLE = [name for name in NAMES if not minimizers.get(name).BY_BATCHES]
TIGHT = {"gradient_tolerance": 1e-9, "value_tolerance": 0.0, "iterations": 20_000}


class Quadratic:
    """(x - best) A (x - best) / 2, of eigenvalues from 1 to `widest`."""

    def __init__(self, size: int = 12, widest: float = 100.0) -> None:
        rng = np.random.default_rng(3)
        turned, _ = np.linalg.qr(rng.normal(size=(size, size)))
        self.a = turned @ np.diag(np.geomspace(1, widest, size)) @ turned.T
        self.best = rng.normal(size=size)
        self.looks = 0

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        self.looks += 1
        away = x - self.best
        return float(away @ self.a @ away / 2), self.a @ away


def rosenbrock(x: Vector) -> tuple[float, Vector]:
    return rosen(x), rosen_der(x)


@over("name", NAMES)
def test_the_minimum_of_a_quadratic(name: str) -> None:
    function = Quadratic(widest=10.0 if name not in WHOLE else 100.0)
    settings: dict[str, Any] = TIGHT if name in WHOLE else {**TIGHT, "rate": 0.05}
    found = minimize(function, np.zeros(12), name, **settings)
    np.testing.assert_allclose(found.x, function.best, atol=1e-7)
    assert found.reason == "gradient_tolerance" and found.converged and found.gradient_norm <= 1e-9
    assert found.evaluations == function.looks
    values = [each.value for each in found.history]
    assert [each.iteration for each in found.history] == list(range(1, found.iterations + 1))
    if name in WHOLE:
        assert values == sorted(values, reverse=True)


@over("name", WHOLE)
def test_a_bent_valley(name: str) -> None:
    found = minimize(rosenbrock, [-1.2, 1.0], name, **{**TIGHT, "gradient_tolerance": 1e-7})
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-5)
    assert found.iterations < (60 if "pairs" in minimizers.options(name) else 5000)


@over("name", NAMES)
def test_maximize_is_minimize_upside_down(name: str) -> None:
    function = Quadratic(widest=4.0)

    def hill(x: Vector) -> tuple[float, Vector]:
        value, gradient = function(x)
        return 5 - value, -gradient

    seen: list[float] = []

    def told(iteration: Iteration) -> None:
        seen.append(iteration.value)

    top = maximize(hill, np.zeros(12), name, callback=told, **TIGHT)
    bottom = minimize(function, np.zeros(12), name, **TIGHT)
    assert top.value == pytest.approx(5, abs=1e-12)
    np.testing.assert_allclose(top.x, bottom.x, atol=1e-7)
    assert seen == [each.value for each in top.history] and seen[0] < seen[-1]


def test_owlqn_finds_what_l1_leaves() -> None:
    """A convex function is least where the slope is that of the penalty, or less beside a 0."""
    function: Any = Quadratic()
    function.l1 = np.full(12, 6.0)
    found = minimize(function, np.zeros(12), "owlqn", **TIGHT)
    plain, slope = function(found.x)
    kept = found.x != 0
    np.testing.assert_allclose(slope[kept], -6 * np.sign(found.x[kept]), atol=1e-6)
    assert 0 < kept.sum() < 12 and (abs(slope[~kept]) < 6).all()
    assert found.value == pytest.approx(plain + 6 * abs(found.x).sum(), rel=1e-12)
    for name in (name for name in NAMES if not minimizers.get(name).TAKES_L1):
        with pytest.raises(UserMistake, match="no gradient at 0"):
            minimize(function, np.zeros(12), name)


@over("name", NAMES)
def test_why_it_ends(name: str) -> None:
    function = Quadratic()
    exact = {"gradient_tolerance": 0.0, "value_tolerance": 0.0}
    assert minimize(function, function.best, name).reason == "gradient_tolerance"
    few = minimize(function, np.zeros(12), name, iterations=2, **exact)
    assert (few.reason, few.iterations) == ("iterations", 2)
    short = minimize(function, np.zeros(12), name, evaluations=4, **exact)
    assert (short.reason, short.evaluations) == ("evaluations", 4)
    told = minimize(function, np.zeros(12), name, callback=lambda each: "enough" if each.iteration == 3 else None)
    assert (told.reason, told.details, told.iterations) == ("callback", "enough", 3)
    rough = minimize(function, np.zeros(12), name, gradient_tolerance=0.0, value_tolerance=0.5)
    assert rough.reason == "value_tolerance" and rough.iterations < 1000
    nowhere = minimize(lambda x: (float("nan"), x), np.zeros(12), name)
    assert nowhere.reason == "not_finite" and nowhere.iterations == 0


@over("name", WHOLE)
def test_a_way_without_an_end_is_said(name: str) -> None:
    """A gradient that leads up: no step along it is lower."""
    found = minimize(lambda x: (float(x @ x), -2 * x), np.ones(3), name)
    assert found.reason == "line_search" and found.value == 3.0 and (found.x == 1).all()


@over("name", WHOLE)
def test_where_it_is_not_finite_is_too_high(name: str) -> None:
    """-log x ends at 0; below, its value looks low and its gradient is none."""

    def function(x: Vector) -> tuple[float, Vector]:
        if x[0] <= 0:
            return -1000.0, np.array([np.nan])
        return float(100 * x[0] - np.log(x[0])), 100 - 1 / x

    found = minimize(function, np.ones(1), name, **{**TIGHT, "gradient_tolerance": 1e-6})
    assert found.x[0] == pytest.approx(0.01, rel=1e-6)


def test_values_that_are_rounded_do_not_hold_it_up() -> None:
    """Float32's rounding on top of a value far from 0: slopes lead on where values show nothing."""

    class Rounded(Quadratic):
        rounding = 1e-7

        def __call__(self, x: Vector) -> tuple[float, Vector]:
            value, gradient = super().__call__(x)
            return float(np.float32(value + 1000)), gradient

    for name in WHOLE:
        function = Rounded()
        found = minimize(function, np.zeros(12), name, gradient_tolerance=1e-5, value_tolerance=0.0)
        assert found.reason == "gradient_tolerance", (name, found.reason, found.details)
        np.testing.assert_allclose(found.x, function.best, atol=5e-5)


@over(
    ("settings", "match"),
    [
        ({"optimizer": "bfgs"}, "minimizer: expected one of .*did you mean 'lbfgs'"),
        ({"pears": 3}, "lbfgs: pears: unknown setting of lbfgs; allowed: pairs"),
        ({"pairs": 0}, "lbfgs: pairs: expected a whole number from 1 to 100, got 0"),
        ({"start": [[0.0]]}, "start: expected a vector of finite numbers"),
        ({"start": [np.inf]}, "start: expected a vector of finite numbers"),
    ],
)
def test_what_is_none(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(UserMistake, match=match):
        minimize(**{"function": rosenbrock, "start": [0.0, 0.0], **settings})


@over("search", [minimize, maximize])
@over(
    ("answer", "got"),
    [
        (1.0, "got 1.0"), (None, "got None"), ((1.0, [0.0]), r"got a gradient of \[1\]"),
        ((1.0, [[0.0, 0.0]]), r"got a gradient of \[1, 2\]"), (("high", [0.0, 0.0]), "got .'high', "),
        ((1.0, ["up", "down"]), "got .1.0, "), ((1.0, None), r"got a gradient of \[\]"),
    ],
)
def test_what_a_function_has_to_give(search: Any, answer: Any, got: str) -> None:
    with pytest.raises(UserMistake, match=f"function: expected a value and a gradient of 2 numbers, {got}"):
        search(lambda x: answer, [0.0, 0.0])


class Noisy:
    """The mean of many quadratics, a batch of which is far from the others."""

    batches = 40

    def __init__(self) -> None:
        self.away = np.random.default_rng(7).normal(0, 3, (40, 5))
        self.best = self.away.mean(0)

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        return float(((x - self.away) ** 2).sum(1).mean() / 2), x - self.best

    def of_batch(self, at: int, x: Vector) -> tuple[float, Vector]:
        return float(((x - self.away[at]) ** 2).sum() / 2), x - self.away[at]


def test_meta_descent_adapts_its_rates_to_noise() -> None:
    """Comes near from rates that are far too small and too large, nearer than such rates alone would."""
    function = Noisy()
    least = function(function.best)[0]
    for rate in (1e-4, 1e-3, 0.5):
        gaps = {}
        for meta_rate in (0.0, 0.1):
            found = minimize(function, np.full(5, 20.0), "stochastic_meta_descent", rate=rate, meta_rate=meta_rate,
                             memory=0.9, iterations=60, value_tolerance=0.0)  # fmt: skip
            gaps[meta_rate] = found.value - least
        assert gaps[0.1] < 0.1 * gaps[0.0], (rate, gaps)
        assert gaps[0.1] < 1e-3 * least, (rate, gaps)
