"""Averaging the vectors of four workers, 10 M float32 each, against memcpy of the same memory, one core.

Bandwidth counts the bytes read and written: five vectors for the mean of four, two for a copy.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time

import numpy as np

from streamtrain import _native
from streamtrain.compute.model import aligned

FIGURES = 1  # lines of a whole run

ELEMENTS = 10_000_000
WORKERS = 4
BAR = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    size = 4 * ELEMENTS
    layout = _native.StateLayout.make([_native.StateBlockSpec("x", "parameters", "learned", (ELEMENTS,))])
    vectors = [aligned(size) for _ in range(WORKERS)]
    for seed, vector in enumerate(vectors):
        vector.view(np.float32)[:] = np.random.default_rng(seed).standard_normal(ELEMENTS, np.float32)
    start, mean, copy = aligned(size), aligned(size), aligned(size)
    workers = [(vector.ctypes.data, 1.0 + at) for at, vector in enumerate(vectors)]
    spent: dict[str, list[float]] = {"average": [], "memcpy": []}
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(spent["memcpy"]) < 3:
        begun = time.perf_counter()
        _native.average(layout, start.ctypes.data, workers, mean.ctypes.data)
        middle = time.perf_counter()
        ctypes.memmove(copy.ctypes.data, vectors[0].ctypes.data, size)
        spent["average"].append(middle - begun)
        spent["memcpy"].append(time.perf_counter() - middle)
    weights = np.arange(1, WORKERS + 1) / np.arange(1, WORKERS + 1).sum()
    heads = [vector.view(np.float32)[:1000].astype(float) for vector in vectors]
    wanted = sum(weight * head for weight, head in zip(weights, heads, strict=True))
    assert np.array_equal(mean.view(np.float32)[:1000], wanted.astype(np.float32))
    ours, rival = (WORKERS + 1) * size / min(spent["average"]) / 1e9, 2 * size / min(spent["memcpy"]) / 1e9
    figure = {"ours": round(ours, 2), "rival": round(rival, 2), "ratio": round(ours / rival, 2)}
    print(json.dumps({"bench": "average of 10 M float32 of 4 workers / memcpy", **figure, "bar": BAR, "unit": "GB/s"}))


if __name__ == "__main__":
    main()
