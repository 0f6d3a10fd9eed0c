"""The oracle of compute/ops/head.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import share, step, weights


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


@oracle(example_f32)
def head_weight_f32(rows: int, label: Array, weight: Array, own: Array) -> None:
    own[:] = np.where(np.isnan(label), 0, weight)


@oracle(example_i32)
def head_weight_i32(rows: int, label: Array, weight: Array, own: Array) -> None:
    own[:] = np.where(label < 0, 0, weight)


@oracle(example)
def head_begin(head: Any) -> None:
    head.loss_sum = head.objective_sum = head.weight_sum = 0.0
    head.active_rows = head.not_finite = 0


@oracle(example)
def head_gradient(n: int, weight: float, head: Any, step: Any, dz: Array) -> None:
    part = weight * head.weight_sum * share(step) if head.weight_sum > 0 else 0.0
    dz *= np.float32(part)


@oracle(example)
def head_end(weight: float, head: Any, step: Any) -> None:
    step.objective_sum += float(np.float32(weight)) * head.objective_sum
    step.loss_sum = step.objective_sum
    step.not_finite |= head.not_finite


@oracle(example_scores)
def score_heads(step: Any, loss: Array, count: Array) -> None:
    loss += [step.loss_sum, step.weight_sum]
    count += step.active_rows
