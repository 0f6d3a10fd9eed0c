"""Schedules of the learning rate: those of PyTorch, at any step, and refused where they are none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import schedules
from streamtrain.compute.schedules._exact import cosine, power
from streamtrain.errors import UserMistake

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
