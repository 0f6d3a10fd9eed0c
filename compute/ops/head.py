"""The inputs and outputs of the loss of one of several heads: the weight of its rows, its part of gradient and loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import share, step, weights
from streamtrain.compute.spec import (
    Array,
    Op,
    changed,
    given,
    out,
    size,
    step_begun,
    step_changed,
    step_read,
    value,
)  # fmt: skip

HELP = "of several heads: the weight of the rows that have one's label, its part of the gradient and of the loss"
ROWS = ("f32", "rows")


def weight_f32(rows: int, label: Array, weight: Array, own: Array) -> None:
    own[:] = np.where(np.isnan(label), 0, weight)


def weight_i32(rows: int, label: Array, weight: Array, own: Array) -> None:
    own[:] = np.where(label < 0, 0, weight)


def begin(head: Any) -> None:
    head.loss_sum = head.objective_sum = head.weight_sum = 0.0
    head.active_rows = head.not_finite = 0


def gradient(n: int, weight: float, head: Any, step: Any, dz: Array) -> None:
    part = weight * head.weight_sum * share(step) if head.weight_sum > 0 else 0.0
    dz *= np.float32(part)


def end(weight: float, head: Any, step: Any) -> None:
    step.objective_sum += float(np.float32(weight)) * head.objective_sum
    step.loss_sum = step.objective_sum
    step.not_finite |= head.not_finite


def scores(step: Any, loss: Array, count: Array) -> None:
    loss += [step.loss_sum, step.weight_sum]
    count += step.active_rows


def example_f32(rng: np.random.Generator, n: int) -> dict[str, Any]:
    label = rng.normal(0, 3, n)
    label[rng.random(n) < 0.3] = np.nan
    return dict(rows=n, label=label, weight=weights(rng, n))


def example_i32(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return dict(rows=n, label=rng.integers(-1, 4, n), weight=weights(rng, n))


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Returns an example of a head that has none of the rows, where there are few."""
    weight = weights(rng, n)
    head = step(np.where(rng.random(n) < 0.5, weight, 0).astype(np.float32), objective_sum=3.5, not_finite=n % 2)
    return {"rows": n, "n": n, "weight": 0.3, "head": head, "step": step(weight, objective_sum=1.25),
            "dz": rng.normal(0, 2, n)}  # fmt: skip


def example_scores(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"step": step(weights(rng, n), loss_sum=2.5), "loss": [1.0, 2.0], "count": [7]}


OPS = (
    Op("head_weight_f32", (size("rows"), given("label", *ROWS), given("weight", *ROWS), out("own", *ROWS)),
       weight_f32, example_f32, each=("rows",), tiles="rows"),
    Op("head_weight_i32", (size("rows"), given("label", "i32", "rows"), given("weight", *ROWS), out("own", *ROWS)),
       weight_i32, example_i32, each=("rows",), tiles="rows"),
    Op("head_begin", (step_begun("head"),), begin, example),
    Op("head_gradient", (size("n"), value("weight"), step_read("head"), step_read(), changed("dz", "f32", "n")),
       gradient, example, each=("n",), tiles="rows"),
    Op("head_end", (value("weight"), step_read("head"), step_changed()), end, example),
    Op("score_heads", (step_changed(), changed("loss", "f64", 2), changed("count", "i64", 1)), scores, example_scores),
)
