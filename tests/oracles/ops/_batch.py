"""Example batches for ops that work on rows: weights with padding, step blocks, missing numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Array


def weights(rng: np.random.Generator, rows: int) -> Array:
    """Weights of which about a tenth are 0, and the last few are padding."""
    weight = np.where(rng.random(rows) < 0.1, 0, rng.uniform(0.5, 2, rows))
    weight[rows - rows // 8 :] = 0
    return weight.astype(np.float32)   # as the slot holds them: the step block has their sum


def with_missing(rng: np.random.Generator, numbers: Array) -> Array:
    """Numbers [rows, columns] of which some are missing, in every third column."""
    gone = (rng.random(numbers.shape) < 0.2) & (np.arange(numbers.shape[1]) % 3 == 1)
    return np.where(gone, np.nan, numbers)


def sums_before(added: Array) -> Array:
    """Returns for each row the sum of what the rows before it add. It does not subtract the row's own part, which
    may be all there is."""
    return np.concatenate([np.zeros_like(added[:1]), np.cumsum(added, 0)[:-1]])


def step(weight: Array | None = None, **fields: Any) -> _native.StepBlock:
    """A step block in the middle of training, with weight sum and active rows of the batch where one is given."""
    block = _native.StepBlock()
    block.learning_rate = 0.01
    block.number = 3
    block.weight_sum = 1.0 if weight is None else float(np.maximum(weight, 0).sum(dtype=np.float64))
    block.active_rows = 1 if weight is None else int((weight > 0).sum())
    for name, content in fields.items():
        setattr(block, name, content)
    return block


def share(step_block: Any) -> float:
    """1 / weight sum; 0 where there is none."""
    return 1.0 / step_block.weight_sum if step_block.weight_sum > 0 else 0.0
