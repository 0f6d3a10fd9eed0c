"""Optimizers over many steps, schedules of the rate, conditions of early stopping, and minimizers: as in float64, as in
PyTorch; their settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgpack
import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops, optimizers, schedules
from streamtrain.compute.early_stopping import Conditions, StoppingState
from streamtrain.compute.exact import cosine, power
from streamtrain.compute.optimizers import COMMON, KEPT, SETTINGS
from streamtrain.errors import UserMistake
from tests.oracles import ops as oracles
from tests.oracles.ops._batch import step

COUNT, STEPS, RATE = 37, 100, 0.01
ALL = optimizers.names()
# PyTorch's, where it goes by another name: that, and its arguments
RENAMED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "amsgrad": ("Adam", {"amsgrad": True}),
}
THEIRS = dir(import_module("torch.optim")) if find_spec("torch") else []
RIVALS = {each.lower(): (each, {}) for each in THEIRS if each[0].isupper() and each.lower() in ALL} | RENAMED


def gradients() -> np.ndarray[Any, Any]:
    """With a drift, so that the parameters go somewhere, and steps of which some elements see nothing."""
    rng = np.random.default_rng(5)
    found = rng.normal(0.3, 1, (STEPS, COUNT)) * rng.choice([1e-3, 1, 50], COUNT)
    found[:, :4] *= rng.random((STEPS, 4)) < 0.2
    return found.astype(np.float32)


def start() -> np.ndarray[Any, Any]:
    return np.random.default_rng(6).normal(size=COUNT).astype(np.float32)


def rate_of(name: str) -> float:
    """One with which it goes somewhere."""
    return max(RATE, float(optimizers.get(name).RATE))


def run(name: str, dtype: type, **given: float) -> np.ndarray[Any, Any]:
    """Parameters after all gradients: of the kernel, or in float64 of the reference."""
    options = optimizers.by_group(name, given)["weight"]
    entry = optimizers.get(name)
    op = ops.get(entry.op(options))
    plain = {**options, **dict.fromkeys(getattr(entry, "FOLDED", ()), 0.0), "end": COUNT}
    settings = np.array([[*(plain[each] for each in SETTINGS), *entry.factors(options)]])
    p = start().astype(dtype)
    state = [np.zeros(COUNT, dtype) for _ in entry.state(options)]
    padded = [*state, *[None] * (len(KEPT) - len(state))]
    for number, g in enumerate(gradients(), 1):
        block = step(learning_rate=rate_of(name), number=number)
        arguments = [COUNT, 1, block, settings, None, g.astype(dtype), p, *padded]
        if dtype is np.float64:
            oracles.of(op.name).reference(*arguments)
        else:
            _native.call_kernel(op.name, "", arguments)
        assert not block.not_finite
    return p


@over("name", ALL)
@over("given", [{}, {"l1": 0.02, "l2": 0.05, "weight_decay": 0.1, "clip_value": 0.8}])
def test_a_hundred_steps_are_those_of_float64(name: str, given: dict[str, float]) -> None:
    found, exact = run(name, np.float32, **given), run(name, np.float64, **given)
    assert abs(exact - start()).max() > 0.05
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=2e-4)


@over("name", sorted(RIVALS))
@over("decay", [0.0, 0.1])
def test_it_is_no_further_from_float64_than_pytorch(name: str, decay: float) -> None:
    """Allows 5 times the error of PyTorch's float32. PyTorch's weight_decay is our l2, except for AdamW."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    rival, arguments = RIVALS[name]

    def torchs(dtype: Any) -> np.ndarray[Any, Any]:
        p = torch.nn.Parameter(torch.from_numpy(start()).to(dtype))
        optimizer = getattr(torch.optim, rival)([p], lr=rate_of(name), weight_decay=decay, **arguments)
        for g in gradients():
            p.grad = torch.from_numpy(g).to(dtype)
            optimizer.step()
        return np.asarray(p.detach().numpy())

    exact = torchs(torch.float64)
    given = {"weight_decay" if name == "adamw" else "l2": decay}
    ours, theirs = (abs(found - exact).max() for found in (run(name, np.float32, **given), torchs(torch.float32)))
    assert ours < max(5 * theirs, 2e-7 * abs(exact).max()), (ours, theirs)


@over("name", ALL)
def test_what_a_step_does_not_touch_stays(rig: Any, spec: Any, name: str) -> None:
    """Rows of a table, whatever shrinks the others; and everything where a batch has no weight."""
    model_spec = spec(categories=1, optimizer=name)
    model_spec["optimizer"] |= {"weight_decay": 0.5, "l2": 0.5, "l1": 0.01}
    rigged = rig(model_spec)
    rigged.blocks["categories"][:] = 2
    rigged.blocks["categories"][::3] = 5
    plan, views = rigged.plan(), rigged.model.views(rigged.state)
    before = {block: view.copy() for block, view in views.items() if "embedding" in block}
    rigged.step(plan)
    assert plan.step.not_finite == 0
    for block, view in before.items():
        changed = {int(row) for row in np.flatnonzero((views[block] != view).any(1))}
        assert changed == {2, 5} if name == "adam" else changed <= {2, 5}, block
    assert (views["c0.embedding"][[2, 5]] != before["c0.embedding"][[2, 5]]).any(1).all()
    rigged.blocks["weight"][:] = 0
    learned = rigged.learned.copy()
    rigged.step(plan)
    assert np.array_equal(learned, rigged.learned)


def test_groups_have_settings_of_their_own(rig: Any, spec: Any) -> None:
    def after(**optimizer: Any) -> dict[str, np.ndarray[Any, Any]]:
        rigged = rig({**spec(layers=[{"dense": 3}], categories=1), "optimizer": {"name": "sgd", **optimizer}})
        views = rigged.model.views(rigged.state)
        for name in ("dense0.bias", "dense0.weight", "output.weight"):
            views[name][:] = 0.5
        rigged.step(rigged.plan())
        return {name: view.copy() for name, view in views.items()}

    plain, decayed = after(), after(weight_decay=0.1)
    shrunk = {name for name in plain if not np.array_equal(plain[name], decayed[name])}
    assert shrunk == {"dense0.weight", "output.weight", "c0.embedding"}
    np.testing.assert_allclose(plain["dense0.weight"] - decayed["dense0.weight"], 0.01 * 0.1 * 0.5, rtol=1e-3)
    with_bias = after(weight_decay=0.1, groups={"bias": {"weight_decay": 0.1}, "embedding": {"weight_decay": 0}})
    assert {name for name in plain if not np.array_equal(plain[name], with_bias[name])} == {
        "dense0.weight", "output.weight", "dense0.bias", "output.bias"
    }  # fmt: skip
    still = after(groups={"weight": {"rate_factor": 0}})
    assert (still["dense0.weight"] == 0.5).all() and not (still["dense0.bias"] == 0.5).all()


def test_ftrl_keeps_at_zero_what_little_speaks_for(spec: Any) -> None:
    """And goes on from the parameter's start."""
    p = start()
    settings = np.array([[COUNT, 1.0, 0, 0, 0, 0, 1.0, 0.5, 0.0]])
    z, n, g = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32)
    _native.call_kernel("ftrl", "", [COUNT, 1, step(number=1), settings, None, g, p, z, n, None])
    np.testing.assert_allclose(p, start(), rtol=1e-6)
    small = np.random.default_rng(1).normal(0, 0.01, COUNT).astype(np.float32)
    p, z, n = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32)
    small[0] = 3
    for number in (1, 2, 3):
        _native.call_kernel("ftrl", "", [COUNT, 1, step(number=number), settings, None, small, p, z, n, None])
    assert p[0] < 0 and not p[1:].any()


def own_common(name: str) -> dict[str, float]:
    """The settings of all that its formula has itself, each with a value."""
    plain = optimizers.by_group(name, {})["weight"]
    factors = optimizers.get(name).factors
    return {each: 0.5 for each in COMMON if factors({**plain, each: 0.5}) != factors({**plain, each: 0.25})}


@over("name", [name for name in ALL if own_common(name)])
def test_a_setting_of_the_formulas_own_counts_once(rig: Any, spec: Any, name: str) -> None:
    folded = own_common(name)
    rigged = rig({**spec(), "optimizer": {"name": name, **folded}})
    rigged.blocks["numbers"][:] = 0
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    p, options = views["output.weight"][:, 0].copy(), optimizers.by_group(name, folded)["weight"]
    state = [np.zeros(len(p), np.float32) for _ in optimizers.get(name).state(options)]
    settings = np.array([[len(p), 1.0, 0, 0, 0, 0, *optimizers.get(name).factors(options)]])
    padded = [*state, *[None] * (len(KEPT) - len(state))]
    for view in (views[block.name] for block in rigged.model.blocks if block.group == "optimizer"):
        view[:] = 0
    rigged.step(plan)
    _native.call_kernel(name, "", [len(p), 1, step(number=1), settings, None, np.zeros_like(p), p, *padded])
    np.testing.assert_array_equal(views["output.weight"][:, 0], p)


@over("name", ALL)
def test_what_a_manifest_has_is_read_as_it_was(name: str) -> None:
    groups = {"bias": {"l2": 0.5, "rate_factor": 2.0}}
    normal = optimizers.normal(name, {"groups": groups, "l1": 0.25})
    assert normal["l1"] == 0.25 and normal["groups"] == groups and set(COMMON) < set(normal)
    again = {key: value for key, value in normal.items() if key != "name"}
    assert optimizers.normal(name, again) == normal and not list(optimizers.wrong(name, again))


def stepped(rig: Any, model_spec: dict[str, Any], **optimizer: Any) -> dict[str, float]:
    """Norms of what a step of plain descent at rate 1 took away, by parameter."""
    rigged = rig({**model_spec, "optimizer": {"name": "sgd", **optimizer}})
    rigged.blocks["label"][:] = rigged.blocks["label"][::-1]   # something to learn
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {block.name: views[block.name].copy() for block in rigged.model.blocks if block.group == "parameters"}
    rigged.step(plan, learning_rate=1.0)
    return {name: float(np.linalg.norm(views[name].astype(np.float64) - before[name])) for name in before}


def test_clipping_by_norm_scales_what_is_together(rig: Any, spec: Any) -> None:
    """The whole to one norm, or each group to its own, tables of both kinds with it."""
    model_spec = spec(layers=[{"dense": 6, "activation": "tanh"}], categories=2, bags=[0, 1, 2])
    plain = stepped(rig, model_spec)
    whole = float(np.linalg.norm(list(plain.values())))
    clipped = stepped(rig, model_spec, clip_norm=whole / 4)
    for name, norm in plain.items():
        assert clipped[name] == pytest.approx(norm / 4, rel=1e-3, abs=1e-6), name
    assert stepped(rig, model_spec, clip_norm=whole * 4) == pytest.approx(plain, rel=1e-6)
    grouped = stepped(
        rig, model_spec, groups={"bias": {"clip_group_norm": 0.01}, "embedding": {"clip_group_norm": 0.02}}
    )
    for kind, limit in (("bias", 0.01), ("embedding", 0.02)):
        names = [name for name in plain if name.endswith(kind)]
        assert np.linalg.norm([plain[name] for name in names]) > limit
        assert np.linalg.norm([grouped[name] for name in names]) == pytest.approx(limit, rel=1e-3)
    assert all(grouped[name] == pytest.approx(norm) for name, norm in plain.items() if name.endswith("weight"))


def test_clipping_by_norm_is_what_the_reference_does(rig: Any, spec: Any) -> None:
    model_spec = spec(layers=[{"dense": 6, "activation": "tanh"}], categories=2, bags=[0, 1, 2])
    model_spec["optimizer"] = {"name": "sgd", "clip_norm": 0.3, "clip_group_norm": 0.2}
    one, other = rig(model_spec), rig(model_spec)
    for rigged, plan in ((one, one.plan("cpu")), (other, other.plan("precise"))):
        for _ in range(2):
            rigged.step(plan, learning_rate=0.5)
    np.testing.assert_allclose(one.learned, other.learned, atol=1e-5)


def test_a_norm_that_is_not_finite_is_flagged_and_leaves_no_trace(rig: Any, spec: Any) -> None:
    """Not between the parameters either, which a round's start does not set again."""
    rigged = rig({**spec(numbers=1), "optimizer": {"name": "adam", "clip_norm": 1.0}})
    plan, start = rigged.plan(), rigged.state.copy()
    rigged.blocks["weight"][3] = 1
    for number in (np.inf, np.nan):
        rigged.blocks["numbers"][3] = number
        rigged.step(plan)
        assert plan.step.not_finite == 1
    rigged.blocks["numbers"][3] = 0
    for block in rigged.model.blocks:   # as a round's start does
        rigged.state[block.offset : block.offset + block.bytes] = start[block.offset : block.offset + block.bytes]
    rigged.step(plan)
    assert plan.step.not_finite == 0


def test_max_norm_holds_what_leads_to_each_output(rig: Any, spec: Any) -> None:
    rigged = rig({**spec(layers=[{"dense": 6}]), "optimizer": {"name": "adam", "max_norm": 0.5}})
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    views["dense0.weight"][:, 0] *= 0.01
    rigged.step(plan)
    found = np.linalg.norm(views["dense0.weight"].astype(np.float64), axis=0)
    assert found[1:] == pytest.approx(0.5, rel=1e-5) and found[0] < 0.1
    assert np.linalg.norm(views["output.weight"]) == pytest.approx(0.5, rel=1e-5)


NAN, INF = math.nan, math.inf


def stood(conditions: Conditions, scores: list[float]) -> list[StoppingState]:
    """With snapshot 2 the first, and each taken up from what was written of the one before."""
    found = [StoppingState()]
    for version, score in enumerate(scores, 2):
        before = StoppingState.from_dict(msgpack.unpackb(msgpack.packb(found[-1].to_dict())))
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


def test_a_score_that_is_none_is_reported_first() -> None:
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


RATES = 200
CASES: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"name": "step", "steps": 30, "gamma": 0.5}, "StepLR", {"step_size": 30, "gamma": 0.5}),
    ({"name": "exponential", "gamma": 0.97, "steps": 1}, "ExponentialLR", {"gamma": 0.97}),
    ({"name": "polynomial", "steps": 150, "power": 2.5}, "PolynomialLR", {"total_iters": 150, "power": 2.5}),
    ({"name": "cosine", "steps": 40, "restarts": True}, "CosineAnnealingWarmRestarts", {"T_0": 40}),
    ({"name": "cosine", "steps": 20, "restarts": True, "growth": 2, "end": 0.1}, "CosineAnnealingWarmRestarts",
     {"T_0": 20, "T_mult": 2, "eta_min": 0.1}),
    ({"name": "one_cycle", "steps": RATES}, "OneCycleLR", {"max_lr": 1.0, "total_steps": RATES}),
]  # fmt: skip


@over(("schedule", "rival", "arguments"), CASES, ids=[str(at) for at in range(len(CASES))])
def test_it_is_pytorchs(schedule: dict[str, Any], rival: str, arguments: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler, expected = getattr(torch.optim.lr_scheduler, rival)(optimizer, **arguments), []
    for at in range(RATES):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if at < RATES - 1:
            scheduler.step()
    rate = schedules.rates({"rate": 1.0, **schedule})
    np.testing.assert_allclose([rate(at) for at in range(RATES)], expected, rtol=1e-9, atol=1e-12)


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
    schedule = schedules.normal(name, {**needed, "warm_up": 10}, 0.1)
    plain, warm = schedules.rates({**schedule, "warm_up": 0}), schedules.rates(schedule)
    for at in range(30):
        assert warm(at) == pytest.approx(plain(at) * min(1, (at + 1) / 10))
    for at in (10**6, 10**12, 2**62):
        assert 0 <= plain(at) <= 0.1
    assert (
        schedules.normal(name, {key: schedule[key] for key in schedule if key not in ("name", "rate")}, 0.1) == schedule
    )


def test_powers_and_cosines() -> None:
    for turn in np.linspace(0, 1, 101):
        assert cosine(float(turn)) == pytest.approx(math.cos(math.pi * turn), abs=1e-15)
    for base, exponent in ((0.97, 12345.0), (3.5, -0.5), (0.0, 2.0), (0.0, 0.0), (1.0, 1e15)):
        assert power(base, exponent) == pytest.approx(base**exponent, rel=1e-14)
    assert power(0.5, 1e18) == 0.0


@over(("schedule", "message"), [
    ({"name": "cosine", "rate": 1.0, "steps": 0}, "cosine: steps: expected a whole number from 1"),
    ({"name": "cosine", "rate": 1.0, "steps": 3, "gamma": 1}, "cosine: gamma: unknown setting of cosine"),
    ({"name": "cosinus", "rate": 1.0}, "cosinus"), ({"name": "constant"}, "expected a schedule such as"),
])  # fmt: skip
def test_what_is_no_schedule_is_refused(schedule: dict[str, Any], message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        schedules.rates(schedule)
