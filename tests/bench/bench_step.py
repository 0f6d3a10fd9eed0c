"""One training step alone, arrays in memory, one core: against PyTorch eager on the CPU (one thread; fused Adam named
beside) and scikit-learn's partial_fit. STREAMTRAIN_ISA=v3 forces both sides to AVX2; without it both are shown.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ISA = os.environ.get("STREAMTRAIN_ISA", "")
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
if ISA == "v3":
    os.environ["ATEN_CPU_CAPABILITY"] = "avx2"   # before torch is imported
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np  # noqa: E402
from fma_peak import peak_flops  # noqa: E402
from slots import set_rows  # noqa: E402

from streamtrain import _native  # noqa: E402
from streamtrain.compute.model import Model, aligned  # noqa: E402

FEATURES = 28
SPEC = {"input": {"numbers": FEATURES}, "loss": "binary_cross_entropy", "optimizer": {"name": "adam"}}
BARS = {   # (network, rows) -> least ratio to PyTorch eager, by instruction set
    ("28-64-64-1", 32): {"v4": 25.0, "v3": 12.5}, ("28-64-64-1", 256): {"v4": 6.0, "v3": 3.5},
    ("28-64-64-1", 1024): {"v4": 3.5, "v3": 1.8}, ("28-64-64-1", 4096): {"v4": 3.0, "v3": 1.5},
    ("28-64-64-1", 65536): {"v4": 3.0, "v3": 1.5}, ("logistic", 32): {"v4": 150.0, "v3": 75.0},
    ("logistic", 256): {"v4": 50.0, "v3": 25.0}, ("logistic", 4096): {"v4": 12.0, "v3": 6.0},
}
SHARE_BAR, FROM_ROWS = 0.75, 256   # of the peak in fused multiply-adds, of a whole step with products
PARTIAL_FIT_BAR = 25.0
COMPILED = {("28-64-64-1", 256): {"v4": 4.0, "v3": 2.0}}   # to torch.compile, with --compile: that takes half a minute
ROWS, CAPACITIES = (8, 32, 256), (256, 4096, 65536)   # of slots that are not full: the time is that of their rows
NETWORKS = {"28-64-64-1": [64, 64], "logistic": []}


def batch(rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Numbers and 0/1 labels."""
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    return x, (x[:, 0] + rng.standard_normal(rows) > 0).astype(np.float32)


def ours(sizes: list[int], rows: int, capacity: int = 0) -> Callable[[], object]:
    """A step of the native plan on a slot of this row capacity; without one, on a full slot."""
    layers = [{"dense": size, "activation": "relu"} for size in sizes]
    return stepping(Model({**SPEC, "layers": layers}), rows, capacity or rows)


def product_flop(sizes: list[int]) -> int:
    """Multiplications and additions of matrix products a row, forward and backward."""
    pairs = list(zip([FEATURES, *sizes], [*sizes, 1], strict=True))
    return 2 * (sum(2 * a * b for a, b in pairs) + sum(a * b for a, b in pairs[1:]))


def stepping(model: Model, rows: int, capacity: int) -> Callable[[], object]:
    """A step of a model on so many rows."""
    blocks = [("numbers", "f32", FEATURES), ("label", "f32", 1), ("weight", "f32", 1)]
    layout = _native.SlotLayout.make(capacity, 1, blocks)
    slot, state = aligned(layout.slot_bytes), model.initial_state(1)
    x, y = batch(rows)
    for block, content in zip(layout.blocks, (x, y, np.ones(rows, np.float32)), strict=True):
        slot[block.offset : block.offset + content.nbytes].view(np.float32)[:] = content.reshape(-1)
    set_rows(slot, rows)
    plan = model.compile("cpu", layout, state, aligned(model.statistics_bytes), aligned(model.statistics_bytes))
    step, address = plan.step, int(slot.ctypes.data)
    step.learning_rate = 1e-3
    step.number = 100
    return lambda: (plan.train(address), plan, slot)   # the plan keeps its memories alive, not a slot


def eager(sizes: list[int], rows: int, fused: bool, compiled: bool = False) -> Callable[[], object]:
    """The same step in PyTorch: forward, loss, backward, Adam; forward, loss and backward may be compiled."""
    import torch

    torch.set_num_threads(1)
    x, y = (torch.from_numpy(array) for array in batch(rows))
    parts: list[Any] = []
    for inputs, outputs in zip([FEATURES, *sizes], [*sizes, 1], strict=True):
        parts += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    network = torch.nn.Sequential(*parts[:-1])
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)
    its_loss = torch.nn.BCEWithLogitsLoss()

    def forward() -> Any:
        return its_loss(network(x)[:, 0], y)

    loss = torch.compile(forward) if compiled else forward

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def partial_fit(rows: int) -> Callable[[], object]:
    """scikit-learn's logistic regression on the batch."""
    from sklearn.linear_model import SGDClassifier

    x, y = batch(rows)
    model = SGDClassifier(loss="log_loss")
    model.partial_fit(x, y, classes=[0, 1])
    return lambda: model.partial_fit(x, y)


def best_seconds(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of one call of each, in turns so that all meet the same machine."""
    for call in calls:
        call()   # what is made at the first
    best, end = [float("inf")] * len(calls), time.perf_counter() + seconds
    while time.perf_counter() < end or max(best) == float("inf"):
        for at, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(10):
                call()
            best[at] = min(best[at], (time.perf_counter() - start) / 10)
    return best


def show(
    name: str, rows: int, isa: str, seconds: list[float], rival: str, bar: float | None, **more: float | None
) -> None:
    mine, other = (rows / each for each in seconds)
    print(json.dumps({
        "bench": f"step {name} {rows} rows {isa}", "ours": round(mine), "rival": round(other),
        "ratio": round(mine / other, 2), "bar": bar, "unit": f"rows/s, {rival}", **more,
    }), flush=True)


def measure(seconds: float) -> None:
    """All figures for the selected instruction set."""
    isa = _native.select_isa(ISA or "auto")
    have_torch, peak = importlib.util.find_spec("torch") is not None, peak_flops(isa)
    if not have_torch:
        print("PyTorch is not installed (pip install '.[bench]'): only scikit-learn is compared", file=sys.stderr)
    for (name, rows), bars in BARS.items():
        sizes = NETWORKS[name]
        rivals: dict[str, Callable[[], object]] = {}
        if have_torch:
            rivals = {"PyTorch eager": eager(sizes, rows, False), "PyTorch fused Adam": eager(sizes, rows, True)}
        if not sizes:
            rivals["scikit-learn partial_fit"] = partial_fit(rows)
        if not rivals:
            continue
        found = best_seconds([ours(sizes, rows), *rivals.values()], seconds / len(BARS))
        share = {}
        if sizes:
            share = {"share": round(rows * product_flop(sizes) / found[0] / peak, 2),
                     "share_bar": SHARE_BAR if rows >= FROM_ROWS else None}  # fmt: skip
        for rival, its_seconds in zip(rivals, found[1:], strict=True):
            bar = bars.get(isa) if rival == "PyTorch eager" else None
            if "partial" in rival and rows == 256:
                bar = PARTIAL_FIT_BAR
            show(name, rows, isa, [found[0], its_seconds], rival, bar, **share)


def measure_compiled(seconds: float) -> None:
    """Beside torch.compile with fused Adam, which is its best form; it writes code for AVX2 also where we have AVX-512,
    for which PyTorch 2.15 with GCC 12 writes what spoils its own heap."""
    from torch._inductor import config

    config.cpp.simdlen = 256   # bits
    isa = _native.select_isa(ISA or "auto")
    for (name, rows), bars in COMPILED.items():
        sizes = NETWORKS[name]
        found = best_seconds([ours(sizes, rows), eager(sizes, rows, True, compiled=True)], seconds)
        show(name, rows, isa, found, "torch.compile", bars.get(isa))


def part_full(seconds: float) -> None:
    """Slots that are not full, beside PyTorch on as many rows."""
    isa, (name, sizes) = _native.select_isa(ISA or "auto"), next(iter(NETWORKS.items()))
    for rows in ROWS:
        found = best_seconds(
            [eager(sizes, rows, False), *(ours(sizes, rows, capacity) for capacity in CAPACITIES)], seconds / len(ROWS)
        )
        for capacity, mine in zip(CAPACITIES, found[1:], strict=True):
            show(f"{name} in a slot of {capacity}", rows, isa, [mine, found[0]], "PyTorch eager", None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--compile", action="store_true", help="beside torch.compile too")
    given = parser.parse_args()
    seconds = given.seconds
    if ISA or "v3" not in _native.supported_isas():
        measure(seconds)
        if importlib.util.find_spec("torch") is not None:
            part_full(seconds / 2)
            if given.compile:
                measure_compiled(seconds / 2)
        return
    for isa in [isa for isa in _native.supported_isas() if isa != "v2"]:   # each in a process: torch chooses at import
        command = [sys.executable, __file__, "--seconds", str(seconds / 2), *(["--compile"] if given.compile else [])]
        subprocess.run(command, env={**os.environ, "STREAMTRAIN_ISA": isa}, check=True)


if __name__ == "__main__":
    main()
