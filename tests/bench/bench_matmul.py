"""The three dense kernels against OpenBLAS (NumPy's, one thread), one core, shapes of small networks and one large.

Both sides are called from Python; STREAMTRAIN_ISA chooses our instruction set. OpenBLAS has no bias, relu, mask or sum.
"""

import argparse
import json
import os
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import numpy.typing as npt

from streamtrain import _native

FIGURES = 18  # lines of a whole run

SHAPES = [(256, 28, 64), (256, 64, 64), (256, 64, 1), (256, 28, 1), (1024, 64, 64), (512, 512, 512)]
BARS = {
    "v4": 1.8,
    "v3": 1.0,
}  # of the forward product at 1024 x 64 x 64: AVX2 has half the lanes, OpenBLAS uses AVX2 too


def aligned(*shape: int) -> npt.NDArray[np.float32]:
    """Random floats that begin at a cache line, as parameters and slots do."""
    size = int(np.prod(shape))
    floats = np.empty(size + 16, np.float32)
    first = -floats.ctypes.data // 4 % 16
    array = floats[first : first + size].reshape(shape)
    array[...] = np.random.default_rng(size).standard_normal(shape)
    return array


def best_seconds(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of one call of each, measured in turns so that both meet the same machine."""
    best = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(best) == float("inf"):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(20):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / 20)
    return best


def pairs(rows: int, inputs: int, outputs: int, isa: str) -> dict[str, list[Callable[[], object]]]:
    shape = (rows, inputs, outputs)
    x, w, bias, y = aligned(rows, inputs), aligned(inputs, outputs), aligned(outputs), aligned(rows, outputs)
    dy, mask, dx = aligned(rows, outputs), aligned(rows, inputs), aligned(rows, inputs)
    dw, db, totals = aligned(inputs, outputs), aligned(outputs), np.empty((inputs, 64))

    def kernel(name: str, *arguments: object) -> Callable[[], None]:
        return lambda: _native.call_kernel(name, "", [*shape, *arguments], isa)

    return {
        "forward": [kernel("dense_forward", x, w, bias, 1, y), lambda: np.matmul(x, w, out=y)],
        "grad_input": [kernel("dense_grad_input", dy, w, mask, dx), lambda: np.matmul(dy, w.T, out=dx)],
        "grad_weight": [kernel("dense_grad_weight", x, dy, dw, db, totals), lambda: np.matmul(x.T, dy, out=dw)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds / (3 * len(SHAPES))
    isa = _native.select_isa(os.environ.get("STREAMTRAIN_ISA", "auto"))
    for shape in SHAPES:
        for name, calls in pairs(*shape, isa).items():
            ours, rival = (2e-9 * np.prod(shape) / s for s in best_seconds(calls, seconds))
            figure = {
                "bench": f"dense_{name} {'x'.join(map(str, shape))} {isa}",
                "ours": round(ours, 1),
                "rival": round(rival, 1),
                "ratio": round(ours / rival, 2),
                "bar": BARS.get(isa) if shape == (1024, 64, 64) else None,
                "unit": "GFLOP/s, OpenBLAS",
            }
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
