"""Cross entropy over classes with class weights and label smoothing, from the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import share, step, weights
from streamtrain.compute.spec import Array, Op, given, out, size, step_read, value

HELP = "loss and gradient of a class label with class weights and label smoothing"


def reference(
    rows: int, classes: int, smoothing: float, z: Array, p: Array, plain: Array, label: Array, weight: Array,
    class_weight: Array, step: Any, dz: Array, loss: Array,
) -> None:
    counts, every, score = weight > 0, np.arange(rows), z.astype(np.float64)
    index = np.where((label >= 0) & (label < classes), label, 0)
    factor = class_weight[index].astype(np.float64)
    target = np.full((rows, classes), smoothing / classes)
    target[every, index] += 1 - smoothing
    loss[:] = np.where(counts, factor * (plain + smoothing * (score[every, index] - score.mean(1))), 0)
    dz[:] = np.where(counts[:, None], (weight * share(step) * factor)[:, None] * (p - target), 0)


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 70, weights(rng, n)
    return {
        "rows": n, "classes": classes, "smoothing": 0.1, "z": rng.normal(0, 3, (n, classes)),
        "p": rng.random((n, classes)), "plain": rng.random(n), "label": rng.integers(-1, classes + 1, n),
        "weight": weight, "class_weight": rng.uniform(0.5, 3, classes), "step": step(weight),
    }


MATRIX, ROWS = ("f32", "rows", "classes"), ("f32", "rows")
OPS = (
    Op(
        "class_objective",
        (size("rows"), size("classes"), value("smoothing"), given("z", *MATRIX), given("p", *MATRIX),
         given("plain", *ROWS), given("label", "i32", "rows"), given("weight", *ROWS),
         given("class_weight", "f32", "classes"), step_read(), out("dz", *MATRIX), out("loss", *ROWS)),
        reference, example, rows=("rows",), tiles="rows",
    ),
)
