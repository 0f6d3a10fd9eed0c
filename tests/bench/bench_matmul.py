"""The three products of a dense layer on one core, against the better of OpenBLAS (NumPy's) and MKL (PyTorch's) and as
a share of the peak in fused multiply-adds. STREAMTRAIN_ISA=v3: all use AVX2. Ours go through a batch as a step does, a
tile of rows at a time, and add the tiles' sums; only they have a bias, relu, mask and sum of rows. All are called from
Python in turns and timed by the thread's processor time, less what a call costs: that of a product of 1 x 1 x 1.
"""

import argparse
import importlib.util
import json
import math
import os
import time
from collections.abc import Callable

ISA = os.environ.get("STREAMTRAIN_ISA", "auto")
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
if ISA == "v3":
    os.environ.update(MKL_ENABLE_INSTRUCTIONS="AVX2", OPENBLAS_CORETYPE="Haswell")   # before they are loaded

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from fma_peak import fma_turns  # noqa: E402

from streamtrain import _native  # noqa: E402
from streamtrain.compute.backends.cpu import TILE_ROWS  # noqa: E402
from streamtrain.compute.ops import chain_sum  # noqa: E402

Array = npt.NDArray[np.float32]
Call = Callable[[], object]

FIGURES = 28   # lines of a whole run
MEASURED = [(256, 28, 64), (256, 64, 64), (4096, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)]   # with a bar
SHAPES = [*MEASURED, (256, 64, 1), (256, 28, 1), (1024, 64, 64), (512, 512, 512)]
BARS = {"v4": (0.85, 1.0, 0.75), "v3": (0.425, 0.5, 0.75)}   # of the better rival; their mean; of the peak
TURN = 1e8   # floating-point operations of a turn; at least one call
OWN = 0.1        # the least share of a call that is its product: what calling costs was measured at another moment


def aligned(*shape: int) -> Array:
    """Random floats that begin at a cache line, as parameters and slots do."""
    size = math.prod(shape)
    floats = np.empty(size + 16, np.float32)
    first = -floats.ctypes.data // 4 % 16
    array = floats[first : first + size].reshape(shape)
    array[...] = np.random.default_rng(size).standard_normal(shape)
    return array


def rivals_of(a: Array, b: Array, c: Array) -> list[Call]:
    """c = a b by each of them."""
    calls: list[Call] = [lambda: np.matmul(a, b, out=c)]
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        its_a, its_b, its_c = (torch.from_numpy(array) for array in (a, b, c))
        calls.append(lambda: torch.mm(its_a, its_b, out=its_c))
    return calls


def products(rows: int, inputs: int, outputs: int, isa: str) -> dict[str, list[Call]]:
    """Name of a product -> ours and its rivals."""
    x, w, bias, y = aligned(rows, inputs), aligned(inputs, outputs), aligned(outputs), aligned(rows, outputs)
    dy, mask, dx = aligned(rows, outputs), aligned(rows, inputs), aligned(rows, inputs)
    dw, db = aligned(inputs, outputs), aligned(outputs)
    part_w, part_b = (aligned(*each.shape) if rows > TILE_ROWS else each for each in (dw, db))
    total_w, total_b = (np.empty(each.shape) for each in (dw, db))
    ours: dict[str, list[Call]] = {"forward": [], "grad_input": [], "grad_weight": []}
    for first in range(0, rows, TILE_ROWS):
        count = min(TILE_ROWS, rows - first)
        mine = slice(first, first + count)
        shape = (count, inputs, outputs)
        ours["forward"].append(kernel(isa, "dense_forward", *shape, x[mine], w, bias, 1, y[mine]))
        ours["grad_input"].append(kernel(isa, "dense_grad_input", *shape, dy[mine], w, mask[mine], dx[mine]))
        ours["grad_weight"].append(kernel(isa, "dense_grad_weight", *shape, x[mine], dy[mine], part_w, part_b, None))
        turn = turn_of(first, rows)
        for part, total, whole in ((part_w, total_w, dw), (part_b, total_b, db)) if turn != chain_sum.ONLY else ():
            ours["grad_weight"].append(kernel(isa, "chain_sum", part.size, turn, part, total, whole))
    return {
        "forward": [in_order(ours["forward"]), *rivals_of(x, w, y)],
        "grad_input": [in_order(ours["grad_input"]), *rivals_of(dy, w.T, dx)],
        "grad_weight": [in_order(ours["grad_weight"]), *rivals_of(x.T, dy, dw)],
    }


def kernel(isa: str, name: str, *arguments: object) -> Call:
    given = list(arguments)
    return lambda: _native.call_kernel(name, "", given, isa)


def in_order(calls: list[Call]) -> Call:
    if len(calls) == 1:
        return calls[0]

    def all_of_them() -> None:
        for each in calls:
            each()

    return all_of_them


def turn_of(first: int, rows: int) -> int:
    """As a plan has it of the tile that begins there."""
    if rows <= TILE_ROWS:
        return chain_sum.ONLY
    if first == 0:
        return chain_sum.FIRST
    return chain_sum.LAST if first + TILE_ROWS >= rows else chain_sum.NEXT


def best_seconds(calls: list[tuple[Call, int]], seconds: float) -> list[float]:
    """The least time of one call of each, so many of them in a turn, in turns so that all meet the same machine."""
    best, end = [math.inf] * len(calls), time.perf_counter() + seconds
    while time.perf_counter() < end or max(best) == math.inf:
        for at, (call, repeat) in enumerate(calls):
            start = time.thread_time()
            for _ in range(repeat):
                call()
            best[at] = min(best[at], (time.thread_time() - start) / repeat)
    return best


def figure(name: str, ours: float, rival: float, bar: float | None, **more: float | None) -> None:
    print(json.dumps({
        "bench": name, "ours": round(ours, 1), "rival": round(rival, 1), "ratio": round(ours / rival, 2), "bar": bar,
        "unit": "GFLOP/s, the better of OpenBLAS and MKL", **more,
    }), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    seconds = parser.parse_args().seconds / (3 * len(SHAPES))
    isa = _native.select_isa(ISA)
    turns = fma_turns(isa)
    bar, mean_bar, share_bar = BARS.get(isa, (None, None, None))
    peak_turns = round(TURN / turns(1))
    least = products(1, 1, 1, isa)
    costs = {name: best_seconds([(call, 1000) for call in calls], 0.02) for name, calls in least.items()}
    found = []
    for shape in SHAPES:
        flop, repeat = 2.0 * math.prod(shape), max(1, int(TURN / 2 / math.prod(shape)))
        for name, calls in products(*shape, isa).items():
            in_turn = [(call, repeat) for call in calls]
            *times, at_peak = best_seconds([*in_turn, (lambda: turns(peak_turns), 1)], seconds)
            both = zip(times, costs[name], strict=True)
            ours, *rivals = (1e-9 * flop / max(each - cost, OWN * each) for each, cost in both)
            peak = 1e-9 * TURN / at_peak
            share = {"peak": round(peak, 1), "share": round(ours / peak, 2)}
            title = f"dense_{name} {'x'.join(map(str, shape))} {isa}"
            if shape in MEASURED:
                found.append((ours, max(rivals)))
                figure(title, ours, max(rivals), bar, **share, share_bar=share_bar)
            else:
                figure(title, ours, max(rivals), None, **share)
    means = (math.exp(sum(map(math.log, each)) / len(found)) for each in zip(*found, strict=True))
    figure(f"dense products, geometric mean of those with a bar, {isa}", *means, mean_bar)


if __name__ == "__main__":
    main()
