"""Training steps alone, arrays in memory, against PyTorch on the CPU and scikit-learn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from slots import set_rows

from streamtrain import _native
from streamtrain.compute.model import Model, aligned
from tests.bench.harness import Line, Run, Sides, bench, best_times, isa
from tests.bench.products import peak_flops

BUCKETS, DIM = 100_000, 16
SHARE_BAR, FROM_ROWS = 0.75, 256  # of the peak in fused multiply-adds, of a whole step of wide layers
PEAK = "peak in fused multiply-adds"
EAGER, FUSED, COMPILED = "PyTorch eager", "PyTorch fused Adam", "torch.compile"
NO_TORCH = "torch is not installed"
AVX2 = {"v3": {"ATEN_CPU_CAPABILITY": "avx2"}}  # read when PyTorch is imported
Step = Callable[[], object]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Network:
    """Dense layers over numbers and tables."""

    name: str
    layers: Sequence[int] = ()
    numbers: int = 28
    categories: int = 0
    classes: int = 1

    @property
    def product_flop(self) -> int:
        """Multiplications and additions of matrix products a row, forward and backward."""
        tables = DIM * self.categories  # of the input the gradient is that of tables alone
        pairs = list(itertools.pairwise([self.numbers + tables, *self.layers, self.classes]))
        return 2 * (sum(2 * a * b for a, b in pairs) + tables * pairs[0][1] + sum(a * b for a, b in pairs[1:]))

    @property
    def spec(self) -> dict[str, Any]:
        tables = [{"name": f"c{at}", "buckets": BUCKETS, "embed": DIM} for at in range(self.categories)]
        return {
            "input": {"numbers": self.numbers, "categories": tables, "classes": self.classes},
            "layers": [{"dense": size, "activation": "relu"} for size in self.layers], "optimizer": {"name": "adam"},
            "loss": "softmax_cross_entropy" if self.classes > 1 else "binary_cross_entropy",
        }  # fmt: skip

    def batch(self, rows: int, seed: int | None = None) -> dict[str, Array]:
        """The blocks of a full slot."""
        random = np.random.default_rng(rows if seed is None else seed)
        numbers = random.standard_normal((rows, self.numbers)).astype(np.float32)
        label = random.integers(0, max(2, self.classes), (rows, 1))
        if self.classes == 1:
            label = (numbers[:, :1] + random.standard_normal((rows, 1)) > 0) if self.numbers else label
        blocks = {
            "numbers": numbers, "categories": random.integers(0, BUCKETS, (rows, self.categories)).astype(np.int32),
            "label": label.astype(np.int32 if self.classes > 1 else np.float32),
            "weight": np.ones((rows, 1), np.float32),
        }  # fmt: skip
        return {name: array for name, array in blocks.items() if array.size}

    def slots(self, capacity: int, ranges: int = 1) -> _native.SlotLayout:
        dtypes = {"float32": "f32", "int32": "i32"}
        blocks = [(name, dtypes[str(array.dtype)], array.shape[1]) for name, array in self.batch(1).items()]
        return _native.SlotLayout.make(capacity, ranges, blocks)


SMALL = Network("28-64-64-1", (64, 64))
LOGISTIC = Network("logistic")
WIDE = Network("28-512-512-256-1", (512, 512, 256))


def fill(slot: Array, layout: _native.SlotLayout, batch: Mapping[str, Array]) -> None:
    for block, content in zip(layout.blocks, batch.values(), strict=True):
        slot[block.offset : block.offset + content.nbytes] = content.reshape(-1).view(np.uint8)
    set_rows(slot, len(batch["weight"]))


def planned(spec: Any, layout: _native.SlotLayout, slot: Array, number: int = 100, threads: int = 1) -> Step:
    """A step of the native plan on a slot; `spec` may be a model."""
    model = spec if isinstance(spec, Model) else Model(spec)
    state, base, share = model.initial_state(1), *(aligned(model.statistics_bytes) for _ in range(2))
    base[:] = state[model.learned_bytes :]
    plan = model.compile("cpu", layout, state, base, share, threads=threads)
    plan.step.learning_rate, plan.step.number = 1e-3, number
    address = int(slot.ctypes.data)
    return lambda: (plan.train(address), plan, slot)  # the plan keeps its memories alive, not a slot


def ours(network: Network, rows: int, capacity: int = 0, threads: int = 1, model: Model | None = None) -> Step:
    """A step on a slot of this row capacity; without one, on a full slot."""
    layout = network.slots(capacity or rows)
    slot = aligned(layout.slot_bytes)
    fill(slot, layout, network.batch(rows))
    return planned(model or network.spec, layout, slot, threads=threads)


def pytorch_parts(network: Network) -> Any:
    """The dense layers in PyTorch."""
    import torch

    parts: list[Any] = []
    for sizes in itertools.pairwise([network.numbers + DIM * network.categories, *network.layers, network.classes]):
        parts += [torch.nn.Linear(*sizes), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


def pytorch(network: Network, rows: int, form: str) -> Step:
    """The same step in PyTorch: forward, loss, backward, Adam; SparseAdam for tables."""
    import torch

    torch.set_num_threads(1)
    blocks = network.batch(rows)
    label = torch.from_numpy(blocks["label"][:, 0].astype(np.int64 if network.classes > 1 else np.float32))
    loss: Any = torch.nn.CrossEntropyLoss() if network.classes > 1 else torch.nn.BCEWithLogitsLoss()
    tables = [torch.nn.Embedding(BUCKETS, DIM, sparse=True) for _ in range(network.categories)]
    indices = [torch.from_numpy(column.astype(np.int64)) for column in blocks.get("categories", np.zeros((0, 0))).T]
    x = torch.from_numpy(blocks["numbers"]) if network.numbers else torch.zeros(rows, 0)
    dense = pytorch_parts(network)
    optimizers: list[Any] = [torch.optim.Adam(dense.parameters(), lr=1e-3, fused=form != EAGER)]
    if tables:
        optimizers.append(torch.optim.SparseAdam([table.weight for table in tables], lr=1e-3))

    def computed() -> Any:
        columns = [table(index) for table, index in zip(tables, indices, strict=True)]
        z = dense(torch.cat([x, *columns], 1) if columns else x)
        return loss(z if network.classes > 1 else z[:, 0], label)

    if form == COMPILED:  # bits: for AVX-512 PyTorch 2.15 with GCC 12 writes what spoils its own heap
        from torch._inductor import config

        config.cpp.simdlen = 256
    forward = torch.compile(computed) if form == COMPILED else computed

    def step() -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        forward().backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def beside_pytorch(network: Network, rows: int, *forms: str) -> dict[str, Any]:
    """A side for each form; a reason in its place where there is no PyTorch."""
    installed = find_spec("torch") is not None
    return {form: (pytorch(network, rows, form), rows) if installed else NO_TORCH for form in forms}


def partial_fit(rows: int) -> Step:
    """scikit-learn's logistic regression on the batch."""
    from sklearn.linear_model import SGDClassifier

    blocks, model = LOGISTIC.batch(rows), SGDClassifier(loss="log_loss")
    x, y = blocks["numbers"], blocks["label"][:, 0]
    model.partial_fit(x, y, classes=[0, 1])
    return lambda: model.partial_fit(x, y)


def share_of_peak(network: Network, rows: int) -> Line:
    """The step's products alone, by the peak of the core."""
    bar = SHARE_BAR if rows >= FROM_ROWS and len(network.layers) > 1 else None
    return Line(f"{network.name}, {rows} rows", "ours", PEAK, bar, unit="rows/s")


def peak_rows(network: Network) -> float:
    """Rows a second whose products the core could do, did it nothing else."""
    return peak_flops(isa()) / network.product_flop


def against(network: Network, rows: int, bar: Any) -> list[Line]:
    name = f"{network.name}, {rows} rows"
    lines = [Line(name, "ours", EAGER, bar), Line(name, "ours", FUSED)]
    if network.layers:
        return [*lines, share_of_peak(network, rows)]
    return [*lines, Line(name, "ours", "partial_fit", 25.0 if rows == 256 else None)]


STEP_BARS = {
    (SMALL, 32): {"v4": 25.0, "v3": 12.5}, (SMALL, 256): {"v4": 6.0, "v3": 3.5}, (SMALL, 1024): {"v4": 3.5, "v3": 1.8},
    (SMALL, 4096): {"v4": 3.0, "v3": 1.5}, (SMALL, 65536): {"v4": 3.0, "v3": 1.5},
    (LOGISTIC, 32): {"v4": 150.0, "v3": 75.0}, (LOGISTIC, 256): {"v4": 50.0, "v3": 25.0},
    (LOGISTIC, 4096): {"v4": 12.0, "v3": 6.0},
}  # fmt: skip
CAPACITIES = (256, 4096, 65536)  # of slots that are not full: the time is that of their rows
PART_FULL = {
    (SMALL, rows, *CAPACITIES): [
        Line(f"{SMALL.name}, {rows} rows in a slot of {size}", f"in {size}", EAGER) for size in CAPACITIES
    ]
    for rows in (8, 32, 256)
}


@bench(
    "step",
    {case: against(*case, bar) for case, bar in STEP_BARS.items()} | PART_FULL,
    best_times(repeat=10), "rows/s", every_isa=True, environment=AVX2, seconds=30.0,
)  # fmt: skip
def step(run: Run, network: Network, rows: int, *capacities: int) -> Sides:
    """One training step in memory on one core, against PyTorch eager and with fused Adam, and scikit-learn's
    partial_fit; and the share of the core's peak."""
    sides: dict[str, Any] = {f"in {size}": (ours(network, rows, size), rows) for size in capacities}
    sides |= beside_pytorch(network, rows, EAGER, FUSED)
    if not capacities:
        sides |= {"ours": (ours(network, rows), rows), PEAK: peak_rows(network) if network.layers else 0.0}
    return sides if network.layers else {**sides, "partial_fit": (partial_fit(rows), rows)}


@bench(
    "module",
    {
        (rows,): [Line(f"{SMALL.name}, {rows} rows", "ours", rival, bar) for rival in (EAGER, FUSED)]
        for rows, bar in ((32, None), (256, 0.9), (4096, None))
    },
    best_times(repeat=10), "rows/s", needs=("torch",), seconds=20.0,
)  # fmt: skip
def module(run: Run, rows: int) -> Sides:
    """A training step of a PyTorch module in our plan, against the module in a PyTorch loop with eager and with fused
    Adam."""
    from streamtrain.compute.module_spec import Inputs
    from streamtrain.compute.torch import TorchModule, described, in_process_of_its_own

    in_process_of_its_own()
    source = TorchModule.of(pytorch_parts(SMALL))
    spec = {key: value for key, value in SMALL.spec.items() if key != "layers"} | {"input": {"numbers": SMALL.numbers}}
    its = described(source, Inputs(SMALL.numbers, 1, {}), "f32").to_dict()
    model = Model({**spec, "torch": its}, source)
    return {"ours": (ours(SMALL, rows, model=model), rows), **beside_pytorch(SMALL, rows, EAGER, FUSED)}


def doubled(bar: float | None) -> Any:
    """A bar of AVX-512, of which AVX2 has to reach half."""
    return bar and {"v4": bar, "v3": bar / 2}


NETWORKS: dict[Network, tuple[dict[int, float], tuple[str, ...]]] = {
    WIDE: ({256: 1.2, 4096: 1.1}, (EAGER, FUSED)),
    Network("784-512-512-10", (512, 512), 784, classes=10): ({256: 1.2, 4096: 1.1}, (EAGER, FUSED)),
    Network("40 categories x 16 of 100,000, 64-1", (64,), 0, categories=40): ({32: 40, 256: 10, 4096: 5}, (EAGER,)),
    Network("softmax 64-1000", (), 64, classes=1000): ({256: 2, 4096: 2}, (EAGER, FUSED)),
}
ROWS = (32, 256, 4096)


@bench(
    "networks",
    {
        (network, rows): [
            *(Line(f"{network.name}, {rows} rows", "ours", form, doubled(bars.get(rows))) for form in forms),
            share_of_peak(network, rows),
        ]
        for network, (bars, forms) in NETWORKS.items() for rows in ROWS
    },
    best_times(time.process_time, repeat=2), "rows/s", {"seconds": 0.1, "only": " 32 rows"}, seconds=60.0,
)  # fmt: skip
def networks(run: Run, network: Network, rows: int) -> Sides:
    """One training step of other networks on one core, by processor time, against PyTorch with Adam (SparseAdam for
    tables)."""
    sides = beside_pytorch(network, rows, *NETWORKS[network][1])
    return {"ours": (ours(network, rows), rows), PEAK: peak_rows(network), **sides}


@bench(
    "compiled",
    {
        (network, rows): [Line(f"{network.name}, {rows} rows", "ours", COMPILED, doubled(bars.get(rows)))]
        for network, bars in {SMALL: {256: 4.0}, **{each: bars for each, (bars, _) in NETWORKS.items()}}.items()
        for rows in (ROWS if network is not SMALL else (256,))
    },
    best_times(time.process_time, repeat=2), "rows/s", {"only": "28-64-64-1"}, ("torch",), seconds=60.0,
)  # fmt: skip
def compiled(run: Run, network: Network, rows: int) -> Sides:
    """The steps of `step` and `networks` against torch.compile with fused Adam, which takes half a minute a network and
    writes AVX2 also where we have AVX-512."""
    return {"ours": (ours(network, rows), rows), **beside_pytorch(network, rows, COMPILED)}
