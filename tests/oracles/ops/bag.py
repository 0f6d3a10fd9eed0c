"""The oracle of compute/ops/bag.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.first_seen import slots_of
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import weights
from tests.oracles.ops.embedding import bucket


def spans(ends: Array) -> list[tuple[int, int]]:
    """Returns for each row the first of its entries, and the one behind them."""
    return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)) if len(ends) else []


def _scaled(scale: Array | None, start: int, end: int, mean: int) -> Array:
    factors = np.ones(end - start) if scale is None else scale[start:end].astype(np.float64)
    return factors / len(factors) if mean and len(factors) else factors


def forward(
    rows: int, entries: int, buckets: int, dim: int, width: int, at: int, ends: Array, index: Array,
    scale: Array | None, table: Array, mean: int, adds: int, x: Array,
) -> None:
    found = bucket(index[:, None], 0, buckets)
    for row, (start, end) in enumerate(spans(ends)):
        bag = _scaled(scale, start, end, mean) @ table[found[start:end]].astype(np.float64)
        x[row, at : at + dim] = x[row, at : at + dim] + bag if adds else bag


def lead_of(
    rows: int, entries: int, buckets: int, slots: int, ends: Array, index: Array, weight: Array, seen: Array,
    lead: Array,
) -> None:
    first: dict[int, int] = {}
    found = bucket(index[:, None], 0, buckets)
    for row, (start, end) in enumerate(spans(ends)):
        for entry in range(start, end):
            lead[entry] = first.setdefault(int(found[entry]), entry) if weight[row] > 0 else -1


def gradient_of(
    rows: int, entries: int, dim: int, width: int, at: int, ends: Array, scale: Array | None, dx: Array, lead: Array,
    mean: int, gradient: Array,
) -> None:
    for row, (start, end) in enumerate(spans(ends)):
        for entry, factor in zip(range(start, end), _scaled(scale, start, end, mean), strict=True):
            part = factor * dx[row, at : at + dim].astype(np.float64)
            if lead[entry] == entry:
                gradient[entry] = part
            elif lead[entry] >= 0:
                gradient[lead[entry]] += part


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Rows of about 3 entries, some of none; more room than entries."""
    dim, buckets = 1 + n % 20, 1 + n % 50
    ends = np.cumsum(rng.integers(0, 7, n)).astype(np.int32)
    used = int(ends[-1]) if n else 0
    entries = used + n % 5
    index = rng.integers(-1, buckets + 1, entries).astype(np.int32)
    weight, lead = weights(rng, n), np.full(entries, -1, np.int32)
    lead_of(n, entries, buckets, 0, ends, index, weight, np.zeros(0), lead)
    return {
        "rows": n, "entries": entries, "buckets": buckets, "dim": dim, "width": dim + 5, "at": 2, "ends": ends,
        "index": index, "scale": rng.normal(size=entries) if n % 2 else None, "mean": n % 3 % 2, "adds": n // 2 % 2,
        "table": rng.normal(size=(buckets, dim)), "x": rng.normal(size=(n, dim + 5)), "weight": weight,
        "slots": slots_of(entries), "lead": lead, "dx": rng.normal(size=(n, dim + 5)),
        "gradient": np.zeros((entries, dim)),
    }


ORACLES = {
    "bag_forward": Oracle(forward, example),
    "bag_lead": Oracle(lead_of, example),
    "bag_gradient": Oracle(gradient_of, example),
}
