"""One training step of other networks, arrays in memory, one core: against PyTorch eager with Adam, fused where that is
faster, SparseAdam for tables; with --compile against torch.compile too. In processor time, the least of many calls.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np  # noqa: E402
from fma_peak import peak_flops  # noqa: E402
from slots import set_rows  # noqa: E402

from streamtrain import _native  # noqa: E402
from streamtrain.compute.model import Model, aligned  # noqa: E402

SMOKE = ["--seconds", "0.1", "--rows", "32"]
ROWS = (32, 256, 4096)
SHARE_BAR, FROM_ROWS = 0.75, 256   # of the peak in fused multiply-adds, of a whole step of wide layers
BUCKETS, DIM = 100_000, 16
Step = Callable[[], object]


@dataclass(frozen=True)
class Network:
    """Dense layers over numbers and tables; `bars`: by rows, the least ratio to the best of PyTorch with AVX-512, of
    which AVX2 has to reach half."""

    name: str
    bars: dict[int, float]
    layers: Sequence[int] = ()
    numbers: int = 0
    categories: int = 0
    classes: int = 1
    rivals: Sequence[str] = ("eager", "fused")

    @property
    def product_flop(self) -> int:
        """Multiplications and additions of matrix products a row, forward and backward."""
        tables = DIM * self.categories   # of the input the gradient is that of tables alone
        pairs = list(itertools.pairwise([self.numbers + tables, *self.layers, self.classes]))
        return 2 * (sum(2 * a * b for a, b in pairs) + tables * pairs[0][1] + sum(a * b for a, b in pairs[1:]))


NETWORKS = (
    Network("28-512-512-256-1", {256: 1.2, 4096: 1.1}, (512, 512, 256), numbers=28),
    Network("784-512-512-10", {256: 1.2, 4096: 1.1}, (512, 512), numbers=784, classes=10),
    Network("40 categories x 16 of 100,000, 64-1", {32: 40, 256: 10, 4096: 5}, (64,), categories=40, rivals=("eager",)),
    Network("softmax 64-1000", {256: 2, 4096: 2}, numbers=64, classes=1000),
)


def batch(network: Network, rows: int) -> dict[str, Any]:
    random = np.random.default_rng(rows)
    label = random.integers(0, max(2, network.classes), (rows, 1))
    return {
        "numbers": random.standard_normal((rows, network.numbers)).astype(np.float32),
        "categories": random.integers(0, BUCKETS, (rows, network.categories)).astype(np.int32),
        "label": label.astype(np.int32 if network.classes > 1 else np.float32),
        "weight": np.ones((rows, 1), np.float32),
    }


def ours(network: Network, rows: int, threads: int = 1) -> Step:
    """A step of the native plan on a full slot."""
    tables = [{"name": f"c{at}", "buckets": BUCKETS, "embed": DIM} for at in range(network.categories)]
    model = Model({
        "input": {"numbers": network.numbers, "categories": tables, "classes": network.classes},
        "layers": [{"dense": size, "activation": "relu"} for size in network.layers], "optimizer": {"name": "adam"},
        "loss": "softmax_cross_entropy" if network.classes > 1 else "binary_cross_entropy",
    })  # fmt: skip
    given = {name: array for name, array in batch(network, rows).items() if array.size}
    dtypes = {"float32": "f32", "int32": "i32"}
    blocks = [(name, dtypes[str(array.dtype)], array.shape[1]) for name, array in given.items()]
    layout = _native.SlotLayout.make(rows, 1, blocks)
    slot, state = aligned(layout.slot_bytes), model.initial_state(1)
    for block, content in zip(layout.blocks, given.values(), strict=True):
        slot[block.offset : block.offset + content.nbytes] = content.reshape(-1).view(np.uint8)
    set_rows(slot, rows)
    parts = [aligned(model.statistics_bytes) for _ in range(2)]
    plan = model.compile("cpu", layout, state, *parts, threads=threads)
    plan.step.learning_rate, plan.step.number = 1e-3, 100
    address = int(slot.ctypes.data)
    return lambda: (plan.train(address), plan, slot)   # the plan keeps its memories alive, not a slot


def pytorch(network: Network, rows: int, form: str) -> Step:
    """The same step in PyTorch: forward, loss, backward, Adam."""
    import torch

    torch.set_num_threads(1)
    given = batch(network, rows)
    x = torch.from_numpy(given["numbers"])
    label = torch.from_numpy(given["label"][:, 0].astype(np.int64 if network.classes > 1 else np.float32))
    loss: Any = torch.nn.CrossEntropyLoss() if network.classes > 1 else torch.nn.BCEWithLogitsLoss()
    tables = [torch.nn.Embedding(BUCKETS, DIM, sparse=True) for _ in range(network.categories)]
    indices = [torch.from_numpy(column.astype(np.int64)) for column in given["categories"].T]
    sizes = [network.numbers + DIM * network.categories, *network.layers, network.classes]
    parts: list[Any] = []
    for inputs, outputs in itertools.pairwise(sizes):
        parts += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    dense = torch.nn.Sequential(*parts[:-1])
    optimizers: list[Any] = [torch.optim.Adam(dense.parameters(), lr=1e-3, fused=form == "fused")]
    if tables:
        optimizers.append(torch.optim.SparseAdam([table.weight for table in tables], lr=1e-3))

    def computed() -> Any:
        columns = [table(index) for table, index in zip(tables, indices, strict=True)]
        z = dense(torch.cat([x, *columns], 1) if columns else x)
        return loss(z if network.classes > 1 else z[:, 0], label)

    if form == "compile":   # bits: for AVX-512 PyTorch 2.15 with GCC 12 writes what spoils its own heap
        from torch._inductor import config

        config.cpp.simdlen = 256
    forward = torch.compile(computed) if form == "compile" else computed

    def step() -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        forward().backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def best_seconds(steps: Sequence[Step], seconds: float) -> list[float]:
    """The least processor time of a call of each, in turns so that all meet the same machine."""
    for step in steps:
        step()   # what is made at the first
    best, end = [float("inf")] * len(steps), time.perf_counter() + seconds
    while time.perf_counter() < end or max(best) == float("inf"):
        for at, step in enumerate(steps):
            start = time.process_time()
            step()
            step()
            best[at] = min(best[at], (time.process_time() - start) / 2)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--compile", action="store_true")
    given, isa = parser.parse_args(), _native.select_isa(os.environ.get("STREAMTRAIN_ISA", "auto"))
    if importlib.util.find_spec("torch") is None:
        print(json.dumps({"skipped": "PyTorch is not installed; pip install '.[bench]'"}))
        return
    peak = peak_flops(isa)
    for network in NETWORKS:
        for rows in given.rows:
            forms = [*network.rivals, *(["compile"] if given.compile else [])]
            seconds = given.seconds / (len(NETWORKS) * len(given.rows))
            mine, *others = best_seconds(
                [ours(network, rows), *(pytorch(network, rows, form) for form in forms)], seconds
            )
            rival, bar = min(others), network.bars.get(rows)
            print(json.dumps({
                "bench": f"step {network.name} {rows} rows {isa}", "ours": round(rows / mine),
                "rival": round(rows / rival), "ratio": round(rival / mine, 2),
                "bar": bar if bar is None or isa == "v4" else bar / 2,
                "unit": f"rows/s, PyTorch {forms[others.index(rival)]}",
                "share": round(rows * network.product_flop / mine / peak, 2),
                "share_bar": SHARE_BAR if len(network.layers) > 1 and rows >= FROM_ROWS else None,
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
