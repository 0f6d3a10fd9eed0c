"""The warning of a job that is worse than the constant prediction, and the cause that it names."""

from __future__ import annotations

from typing import Any

import numpy as np
from looped import over

import streamtrain
from streamtrain.job import Job
from streamtrain.job.learning import Learning
from streamtrain.topics.rounds import SLOT_DTYPE

ROWS = 70_000
AT = np.arange(ROWS) / 10_000


def job(model: dict[str, Any] | None = None, labels: tuple[str, ...] = ("y",), **optimizer: Any) -> Job:
    columns = {"x": {"standardize": True}, **{label: {"role": "label"} for label in labels}}
    return Job.from_tables({"columns": columns, "optimizer": optimizer, **({"model": model} if model else {})})


def learning(job: Job, losses: dict[str, Any], rng: np.random.Generator, constant: Any, rows: int = ROWS) -> list[str]:
    """The warning after each publication of a job whose rows lose so much, by head; publications lie anywhere."""
    weight = rng.uniform(0.5, 2, rows)
    whole = sum(losses.values())
    cuts = sorted({*rng.integers(1, rows, rng.integers(0, 9)), rows})
    found, at, total, warnings = Learning(job, {}), 0, {"rows": 0}, []
    for end in cuts:
        ends = np.arange(at + rng.integers(1, 900), end, rng.integers(1, 900)).tolist()
        slots = np.zeros(len(ends) + 1, SLOT_DTYPE)
        for slot, (first, last) in zip(slots, zip([at, *ends], [*ends, end], strict=True), strict=True):
            slot["trained"] = last - first
            slot["weight_sum"], slot["loss_sum"] = weight[first:last].sum(), (weight * whole[:rows])[first:last].sum()
        total = {"rows": end, "weight": weight[:end].sum(), "loss": 1.0}
        for head, loss in losses.items():
            name = f"{head}." if head else ""
            means = [(weight * each[:rows])[:end].sum() / weight[:end].sum() for each in (loss, constant)]
            total |= {f"{name}weight": weight[:end].sum(), f"{name}loss": means[0], f"{name}constant_loss": means[1]}
        found.add(total, slots)
        warnings.append(found.warning)
        at = end
    return warnings


ONE = np.ones(ROWS)
NO_WARNING: dict[str, tuple[Any, Any]] = {
    "learns": (0.8 * ONE, ONE), "as the constant": (1.03 * ONE, ONE), "bad at first": (np.where(AT < 1, 300, 0.9), ONE),
    "drift, then better": (np.where((AT > 3) & (AT < 3.5), 1.4, 0.8), ONE),
    "a label that spreads": (0.9 * AT, AT), "labels all alike": (1e-6 * ONE, 0 * ONE),
}  # fmt: skip
WARNING = {"never learns": (np.where(AT < 1, 0.5, 1.2), ONE), "diverges": (np.exp(AT), ONE), "poor": (304 * ONE, ONE)}


@over("seed", range(24), sampled=True)
def test_a_warning_is_for_jobs_worse_than_the_constant_wherever_publications_lie(seed: int) -> None:
    """Only this finds windows that depend on publications: too early, too late or summed from the wrong rows."""
    rng = np.random.default_rng(seed)
    for name, (loss, constant) in NO_WARNING.items():
        assert not any(learning(job(), {"": loss}, rng, constant)), name
    for name, (loss, constant) in WARNING.items():
        warnings = learning(job(), {"": loss}, rng, constant)
        assert warnings[-1], name
        assert not any(learning(job(), {"": loss}, rng, constant, 29_000)), name
    heads = {"heads": {"late": {"loss": "poisson"}, "big": {"loss": "mean_squared_error"}}}
    two = job(heads, ("late", "big"))
    assert learning(two, {"late": 0.5 * ONE, "big": 2 * ONE}, rng, ONE)[-1].startswith("the loss of big is above")


def test_fit_warns_once_with_the_cause_that_its_job_shows(caplog: Any) -> None:
    """Only this finds a trainer that says nothing, or names what its job does not have."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(0, 1, (2, 60_000))
    rows = {"x": 1e5 * x, "z": 1e5 * z, "y": (x + rng.normal(size=len(x)) > 0).astype(int)}
    raw, flat, number = {"x": {}, "z": {}}, {"x": {"standardize": True}}, "mean_squared_error"
    cases: list[tuple[Any, Any, Any, str]] = [
        (raw, {}, rows, "x, z are not standardised, which is the likely cause if their values are large"),
        (flat, {"name": "adam", "learning_rate": 30.0}, rows, "rate is 30, and 0.001 is usual for adam"),
        (flat, {}, {**rows, "y": 1e5 + 1e3 * z}, "likely because label y has a deviation of"),
        (flat, {}, rows, ""),
    ]  # fmt: skip
    for columns, optimizer, given, cause in cases:
        loss = number if given is not rows else "binary_cross_entropy"
        tables = {"columns": {**columns, "y": {"role": "label"}}, "optimizer": optimizer, "model": {"loss": loss},
                  "publish": {"interval": "1ms"}}  # fmt: skip
        caplog.clear()
        streamtrain.fit(tables, {name: given[name] for name in (*columns, "y")})
        warnings = [record.message for record in caplog.records if "above that of the constant" in record.message]
        assert (len(warnings) == 1 and cause in warnings[0]) if cause else not warnings, (cause, warnings)
