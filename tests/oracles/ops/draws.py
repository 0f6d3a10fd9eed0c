"""The oracles of ops that draw random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import step


def philox(key: int, low: Array, high: int) -> Array:
    """The four 32-bit words for each counter (low, high), as [n, 4] (Salmon et al., SC 2011)."""
    mask = np.uint64(0xFFFFFFFF)
    low = low.astype(np.uint64)
    c = [low & mask, low >> np.uint64(32), np.full_like(low, high & 0xFFFFFFFF), np.full_like(low, high >> 32)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high0, high1 = p0 >> np.uint64(32), p1 >> np.uint64(32)
        c = [high1 ^ c[1] ^ np.uint64(k0), p1 & mask, high0 ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1)


def uniform_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "seed": 0x1234567887654321, "stream": 7, "low": -0.25, "high": 0.5}


@oracle(uniform_example)
def uniform_fill(n: int, x: Array, seed: int, stream: int, low: float, high: float) -> None:
    words = philox(seed, np.arange((n + 3) // 4), stream).reshape(-1)[:n]
    x[:] = (words >> np.uint64(8)) * 2.0**-24 * (high - low) + low


def normal_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "seed": 0x1234567887654321, "stream": 7, "mean": -0.25, "deviation": 0.5}


@oracle(normal_example)
def normal_fill(n: int, x: Array, seed: int, stream: int, mean: float, deviation: float) -> None:
    words = philox(seed, np.arange(3 * n), stream).reshape(n, 12) >> np.uint64(8)
    x[:] = (words.sum(1).astype(np.float64) * 2.0**-24 - 6) * deviation + mean


_LANES = 16   # counters whose words lie together: first all first ones, and so on


def dropout_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    given = step(random=0x1234567887654321)
    return {"n": n, "before": 640, "step": given, "stream": 3, "rate": 0.3, "x": rng.normal(size=n)}


@oracle(dropout_example)
def dropout(n: int, before: int, step: _native.StepBlock, stream: int, rate: float, y: Array, x: Array) -> None:
    blocks = -(-n // (4 * _LANES))
    words = philox(step.random, before // 4 + np.arange(blocks * _LANES), stream).reshape(blocks, _LANES, 4)
    drawn = (words.transpose(0, 2, 1).reshape(-1)[:n] >> np.uint64(8)) * 2.0**-24
    y[:] = np.where(drawn >= np.float32(rate), x / (1 - rate), 0)
