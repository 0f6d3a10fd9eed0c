"""The three products of a dense layer on one core, against the better of OpenBLAS (NumPy's) and MKL (PyTorch's) and as
a share of the peak in fused multiply-adds. Ours go through a batch as a step does, a tile of rows at a time, and add
the tiles' sums; only they have a bias, relu, mask and sum of rows."""

from __future__ import annotations

import ctypes
import functools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.model import aligned
from tests.bench.harness import Call, Line, Run, Sides, bench, compiled, isa, least_times, once
from tests.oracles.ops import batch_sums

Array = npt.NDArray[np.float32]
FLAGS = {"v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"], "v3": ["-march=x86-64-v3"]}
MEASURED = [(256, 28, 64), (256, 64, 64), (4096, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)]  # with a bar
SHAPES = [*MEASURED, (256, 64, 1), (256, 28, 1), (1024, 64, 64), (512, 512, 512)]
PRODUCTS = ("forward", "grad_input", "grad_weight")
BETTER, MEAN, PEAK = "the better of OpenBLAS and MKL", {"v4": 0.85, "v3": 0.425}, {"v4": 0.75, "v3": 0.75}
AVX2 = {"v3": {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}}
TURN = 1e8  # floating-point operations of a turn; at least one call
OWN = 0.1  # the least share of a call that is its product: what calling costs was measured at another moment


@functools.cache
def fma_turns(name: str) -> Callable[[int], float]:
    """turns -> the floating-point operations they were, done by the time it returns; needs g++."""
    flags = ["-O3", "-fPIC", "-shared", "-Wno-psabi", f"-DST_ISA=isa_{name}", *FLAGS.get(name, [])]
    turns = ctypes.CDLL(compiled("fma_peak.cpp", *flags)).fma_turns
    turns.argtypes, turns.restype = [ctypes.c_long], ctypes.c_double
    return turns


@functools.cache
def peak_flops(name: str, seconds: float = 0.3) -> float:
    """The most of many short stretches, operations a second of processor time."""
    turns, count, best = fma_turns(name), 1 << 16, 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not best:
        start = time.process_time()
        done = turns(count)
        took = time.process_time() - start
        if took < 1e-3:
            count *= 2
        else:
            best = max(best, done / took)
    return best


def floats(*shape: int) -> Array:
    """Random floats that begin at a cache line, as parameters and slots do."""
    size = math.prod(shape)
    array = aligned(4 * size).view(np.float32).reshape(shape)
    array[...] = np.random.default_rng(size).standard_normal(shape)
    return array


def rivals_of(a: Array, b: Array, c: Array) -> list[Call]:
    """c = a b by each of them."""
    calls: list[Call] = [lambda: np.matmul(a, b, out=c)]
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        its_a, its_b, its_c = (torch.from_numpy(array) for array in (a, b, c))
        calls.append(lambda: torch.mm(its_a, its_b, out=its_c))
    return calls


def products(rows: int, inputs: int, outputs: int) -> dict[str, list[Call]]:
    """Name of a product -> ours and its rivals."""
    x, w, bias, y = floats(rows, inputs), floats(inputs, outputs), floats(outputs), floats(rows, outputs)
    dy, mask, dx = floats(rows, outputs), floats(rows, inputs), floats(rows, inputs)
    dw, db = floats(inputs, outputs), floats(outputs)
    part_w, part_b = (floats(*each.shape) if rows > TILE_ROWS else each for each in (dw, db))
    total_w, total_b = (np.empty(each.shape) for each in (dw, db))
    ours: dict[str, list[Call]] = {name: [] for name in PRODUCTS}
    for first in range(0, rows, TILE_ROWS):
        count = min(TILE_ROWS, rows - first)
        mine, shape = slice(first, first + count), (count, inputs, outputs)
        ours["forward"].append(kernel("dense_forward", *shape, x[mine], w, bias, 1, y[mine]))
        ours["grad_input"].append(kernel("dense_grad_input", *shape, dy[mine], w, mask[mine], dx[mine]))
        ours["grad_weight"].append(kernel("dense_grad_weight", *shape, x[mine], dy[mine], part_w, part_b, None))
        turn = turn_of(first, rows)
        for part, total, whole in ((part_w, total_w, dw), (part_b, total_b, db)) if turn != batch_sums.ONLY else ():
            ours["grad_weight"].append(kernel("chain_sum", part.size, turn, part, total, whole))
    matrices = {"forward": (x, w, y), "grad_input": (dy, w.T, dx), "grad_weight": (x.T, dy, dw)}
    return {name: [in_order(ours[name]), *rivals_of(*matrices[name])] for name in PRODUCTS}


def kernel(name: str, *arguments: object) -> Call:
    values, its_isa = list(arguments), isa()
    return lambda: _native.call_kernel(name, "", values, its_isa)


def in_order(calls: list[Call]) -> Call:
    def all_of_them() -> None:
        for each in calls:
            each()

    return calls[0] if len(calls) == 1 else all_of_them


def turn_of(first: int, rows: int) -> int:
    """Returns the turn that a plan gives to the tile that begins there."""
    if rows <= TILE_ROWS:
        return batch_sums.ONLY
    if first == 0:
        return batch_sums.FIRST
    return batch_sums.LAST if first + TILE_ROWS >= rows else batch_sums.NEXT


def thread_times(calls: Sequence[Call], seconds: float, repeat: int = 1) -> list[float]:
    """The least processor time of a thread for a call of each."""
    named = {str(at): call for at, call in enumerate(calls)}
    return list(least_times(named, seconds, time.thread_time, repeat).values())


@functools.cache
def costs() -> dict[str, list[float]]:
    """The cost of a call from Python, which is that of a product of 1 x 1 x 1."""
    return {name: thread_times(calls, 0.02, 1000) for name, calls in products(1, 1, 1).items()}


MEANS: list[tuple[float, float]] = []  # ours and the rival's of the shapes with a bar, as they are measured


def lines_of(shape: tuple[int, ...], product: str) -> list[Line]:
    name, measured = f"{product} {'x'.join(map(str, shape))}", shape in MEASURED
    return [
        Line(name, product, f"{product}, {BETTER}", MEAN if measured else None),
        Line(name, product, f"{product}, peak", PEAK if measured else None),
    ]


@bench(
    "matmul",
    {(shape,): [line for product in PRODUCTS for line in lines_of(shape, product)] for shape in SHAPES}
    | {(): [Line("geometric mean of those with a bar", "mean", BETTER, {"v4": 1.0, "v3": 0.5})]},
    once, "GFLOP/s", seconds=30.0, environment=AVX2,
)  # fmt: skip
def matmul(run: Run, *shapes: tuple[int, int, int]) -> Sides:
    """The products of a dense layer against OpenBLAS and MKL and the core's peak, by the thread's processor time less
    the cost of a call from Python. STREAMTRAIN_ISA=v3: all use AVX2."""
    if not shapes:
        means = [math.exp(statistics.mean(map(math.log, each))) for each in zip(*MEANS, strict=True)]
        return dict(zip(("mean", BETTER), means or ["no product with a bar was measured"] * 2, strict=True))
    turns, sides, (shape,) = fma_turns(isa()), dict[str, Any](), shapes
    peak_turns = round(TURN / turns(1))
    flop, repeat = 2.0 * math.prod(shape), max(1, int(TURN / 2 / math.prod(shape)))
    for name, calls in products(*shape).items():
        in_turn = [in_order([each] * repeat) for each in calls]
        *times, at_peak = thread_times([*in_turn, lambda: turns(peak_turns)], run.seconds / len(PRODUCTS))
        both = zip((each / repeat for each in times), costs()[name], strict=True)
        ours, *others = (1e-9 * flop / max(each - cost, OWN * each) for each, cost in both)
        sides |= {name: ours, f"{name}, {BETTER}": max(others), f"{name}, peak": 1e-9 * TURN / at_peak}
        if shape in MEASURED:
            MEANS.append((ours, max(others)))
    return sides
