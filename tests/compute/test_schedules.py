"""Conditions of early stopping, on scores as they come, and schedules of the learning rate, as PyTorch has them."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import numpy as np
import pytest
from looped import over

from streamtrain.compute import schedules
from streamtrain.compute.early_stopping import Conditions, Standing
from streamtrain.compute.schedules._exact import cosine, power
from streamtrain.errors import UserMistake

NAN, INF = math.nan, math.inf


def stood(conditions: Conditions, scores: list[float]) -> list[Standing]:
    """With snapshot 2 the first, and each taken up from what was written of the one before."""
    found = [Standing()]
    for version, score in enumerate(scores, 2):
        before = Standing.from_dict(msgpack.unpackb(msgpack.packb(found[-1].to_dict())))
        found.append(conditions.after(before, score, version))
    return found[1:]


def ends(conditions: Conditions, scores: list[float]) -> list[tuple[str, str]]:
    """After each: so many hundred rows, passes, and seconds and a half."""
    standing = enumerate(stood(conditions, scores), 1)
    return [conditions.met(now, rows=100 * count, seconds=count + 0.5, epochs=count) for count, now in standing]


def ends_at(conditions: Conditions, scores: list[float]) -> tuple[str, int] | None:
    """The condition and the number of the evaluation at which it is met first."""
    return next(((name, count) for count, (name, _) in enumerate(ends(conditions, scores), 1) if name), None)


@over(
    ("settings", "scores", "at"),
    [
        ({"no_improvement": 2}, [3, 2, 2, 1, 1, 1, 0], 6),
        ({"no_improvement": 2}, [3, 2, 4, 1, 4, 0], None),
        ({"no_improvement": 1}, [3, 3], 2),
        ({"no_improvement": 2, "least_improvement": 0.5}, [3, 2.7, 2.4, 2.3, 2.0], 5),
        ({"no_improvement": 2, "least_improvement": 0.5}, [3, 2.7, 2.4, 1.8, 1.5, 1.2], None),
        ({"no_improvement": 2}, [NAN, 3, NAN, NAN, 2], 4),
        ({"no_improvement": 2}, [INF, 4, 3, 2], None),
        ({"no_improvement": 2}, [NAN, INF, 1], 2),
        ({"best_score": 1}, [3, 1.1, 1.0, 0.9], 3),
        ({"best_score": 1}, [NAN, -INF, 2], None),
        ({"rows": 300}, [1, 1, 1, 1], 3),
        ({"rows": 301}, [1, 1, 1, 1], 4),
        ({"epochs": 2}, [1, 1, 1], 2),
        ({"time_s": 3}, [1, 1, 1], 3),
        ({"time_s": 2.5}, [1, 1, 1], 2),
        ({"invalid_score": True}, [1, 2, NAN], 3),
        ({"invalid_score": True}, [1, INF], 2),
        ({"invalid_score": True}, [1, 2, 1e308], None),
        ({}, [1, 1, NAN, INF], None),
    ],
)
def test_it_is_met(settings: dict[str, Any], scores: list[float], at: int | None) -> None:
    name = next(iter(settings), "").removesuffix("_s")
    assert ends_at(Conditions(minimise=True, **settings), scores) == (None if at is None else (name, at))


def test_a_score_that_is_to_grow() -> None:
    def at(scores: list[float], **settings: Any) -> Any:
        return ends_at(Conditions(minimise=False, **settings), scores)

    assert at([1, 2, 2, 3, 3, 3, 4], no_improvement=2) == ("no_improvement", 6)
    assert at([0.5, 0.91], best_score=0.9) == ("best_score", 2)
    assert ends_at(Conditions(minimise=True, best_score=0.9), [0.95]) is None
    assert at([0.5, 0.58, 0.65, 0.7, 0.74], no_improvement=2, least_improvement=0.1) == ("no_improvement", 5)


def test_a_score_that_is_none_is_told_first() -> None:
    conditions = Conditions(minimise=True, invalid_score=True, no_improvement=1, rows=100, epochs=1, time_s=1)
    assert ends_at(conditions, [NAN]) == ("invalid_score", 1)
    assert not Conditions(minimise=True, invalid_score=True, least_improvement=0.1).end_by_themselves
    assert conditions.end_by_themselves


def test_why_it_is_met() -> None:
    def why(scores: list[float], **settings: Any) -> str:
        return ends(Conditions(minimise=True, **settings), scores)[-1][1]

    assert why([3, 2, 1.9, 2.5], no_improvement=2, least_improvement=0.5) == (
        "2 evaluations were not better by more than 0.5 than 2 of snapshot 3"
    )
    assert why([NAN, INF], no_improvement=2) == "2 evaluations were not finite"
    assert why([0.5], best_score=1) == "0.5 reaches 1"
    assert why([NAN], invalid_score=True) == "the score is nan"
    assert why([1], rows=100) == "100 rows are trained of 100"
    assert why([1, 1], epochs=2) == "2 passes over the rows are done"
    assert why([1], time_s=1.5) == "1.5 s have passed of 1.5 s"


def test_the_best() -> None:
    def best(scores: list[float], minimise: bool = True) -> Any:
        standing = stood(Conditions(minimise), scores)[-1]
        return standing.best_version, standing.best_score, standing.evaluations

    assert best([NAN, 3, 1, 1, INF, -INF]) == (4, 1, 6)
    assert best([NAN, 3, 1, INF], minimise=False) == (3, 3, 4)
    assert best([NAN]) == (None, None, 1)


STEPS = 200
CASES: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"name": "step", "steps": 30, "gamma": 0.5}, "StepLR", {"step_size": 30, "gamma": 0.5}),
    ({"name": "exponential", "gamma": 0.97, "steps": 1}, "ExponentialLR", {"gamma": 0.97}),
    ({"name": "polynomial", "steps": 150, "power": 2.5}, "PolynomialLR", {"total_iters": 150, "power": 2.5}),
    ({"name": "cosine", "steps": 40, "restarts": True}, "CosineAnnealingWarmRestarts", {"T_0": 40}),
    ({"name": "cosine", "steps": 20, "restarts": True, "growth": 2, "end": 0.1}, "CosineAnnealingWarmRestarts",
     {"T_0": 20, "T_mult": 2, "eta_min": 0.1}),
    ({"name": "one_cycle", "steps": STEPS}, "OneCycleLR", {"max_lr": 1.0, "total_steps": STEPS}),
]  # fmt: skip


@over(("told", "rival", "arguments"), CASES, ids=[str(at) for at in range(len(CASES))])
def test_it_is_pytorchs(told: dict[str, Any], rival: str, arguments: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, expected = getattr(torch.optim.lr_scheduler, rival)(optimizer, **arguments), []
    for step in range(STEPS):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step < STEPS - 1:
            scheduler.step()
    rate = schedules.rates({"rate": 1.0, **told})
    np.testing.assert_allclose([rate(step) for step in range(STEPS)], expected, rtol=1e-9, atol=1e-12)


def test_the_others_by_their_formula() -> None:
    assert [schedules.rates({"name": "constant", "rate": 0.5})(step) for step in (0, 10**9)] == [0.5, 0.5]
    rate = schedules.rates({"name": "inverse", "rate": 2.0, "gamma": 0.5, "power": 0.5})
    assert [rate(step) for step in (0, 2, 6)] == pytest.approx([2, 2 / math.sqrt(2), 1])
    rate = schedules.rates({"name": "cosine", "rate": 1.0, "steps": 10, "end": 0.25})
    assert rate(0) == 1 and rate(5) == pytest.approx(0.625) and rate(10) == rate(10**15) == 0.25


@over("name", schedules.names())
def test_it_warms_up_and_answers_at_any_step(name: str) -> None:
    needed = {key: 4 if key == "steps" else 0.5 for key, option in schedules.own_options(name).items()
              if key in ("steps", "gamma")}  # fmt: skip
    told = schedules.normal(name, {**needed, "warm_up": 10}, 0.1)
    plain, warm = schedules.rates({**told, "warm_up": 0}), schedules.rates(told)
    for step in range(30):
        assert warm(step) == pytest.approx(plain(step) * min(1, (step + 1) / 10))
    for step in (10**6, 10**12, 2**62):
        assert 0 <= plain(step) <= 0.1
    assert schedules.normal(name, {key: told[key] for key in told if key not in ("name", "rate")}, 0.1) == told


def test_powers_and_cosines() -> None:
    for turn in np.linspace(0, 1, 101):
        assert cosine(float(turn)) == pytest.approx(math.cos(math.pi * turn), abs=1e-15)
    for base, exponent in ((0.97, 12345.0), (3.5, -0.5), (0.0, 2.0), (0.0, 0.0), (1.0, 1e15)):
        assert power(base, exponent) == pytest.approx(base**exponent, rel=1e-14)
    assert power(0.5, 1e18) == 0.0


@over(("told", "message"), [
    ({"name": "cosine", "rate": 1.0, "steps": 0}, "cosine: steps: expected a whole number from 1"),
    ({"name": "cosine", "rate": 1.0, "steps": 3, "gamma": 1}, "cosine: gamma: unknown setting of cosine"),
    ({"name": "cosinus", "rate": 1.0}, "cosinus"), ({"name": "constant"}, "expected a schedule such as"),
])  # fmt: skip
def test_what_is_no_schedule_is_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        schedules.rates(told)
