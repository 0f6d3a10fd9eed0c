"""The oracle of compute/ops/log_mel.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.log_mel import FRAMES_A_TURN
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    half = 1 << (2 + n % 5)
    window, step = 2 * half - n % 3, 1 + n % 7
    counts = rng.integers(1, half, 3)
    ends, samples = counts.cumsum(), window + step * max(n - 1, 0)
    angles = np.pi * np.arange(half) / half
    return {
        "turns": -(-n // FRAMES_A_TURN), "frames": n, "samples": samples, "window": window, "step": step, "half": half,
        "bands": len(counts), "entries": ends[-1], "floor": 1e-3, "wave": rng.normal(size=samples),
        "taper": rng.uniform(0.1, 1, window), "turn_of": np.stack([np.cos(angles), -np.sin(angles)], axis=1),
        "first": [rng.integers(1, half - count + 1) for count in counts], "ends": ends,
        "weights": rng.uniform(0, 1, ends[-1]),
    }


@oracle(example, 1e-05)
def log_mel(
    turns: int, frames: int, samples: int, window: int, step: int, half: int, bands: int, entries: int, floor: float,
    wave: Array, taper: Array, turn_of: Array, first: Array, ends: Array, weights: Array, work: Array, y: Array,
) -> None:
    places = step * np.arange(frames)[:, None] + np.arange(window)
    power = np.abs(np.fft.rfft(wave[places].astype(np.float64) * taper, 2 * half)) ** 2
    for band, (bin_, end) in enumerate(zip(first, ends, strict=True)):
        begin = int(ends[band - 1]) if band else 0
        energy = power[:, bin_ : bin_ + end - begin] @ weights[begin:end].astype(np.float64)
        y[:, band] = np.log(np.maximum(energy, floor))
