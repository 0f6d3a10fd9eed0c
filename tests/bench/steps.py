"""Training steps, rounds of several workers and threads of one, and sparse linear models, against PyTorch, scikit-learn
and Vowpal Wabbit."""

from __future__ import annotations

import ctypes
import itertools
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from slots import RowSlot, set_rows

from streamtrain import Job, _native
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.state import view
from tests.bench.bed import spawn
from tests.bench.harness import Line, Run, Sides, bench, best_times, isa, least_times, once
from tests.bench.products import peak_flops
from tests.train.arena_run import ArenaRun

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


APART = "unconnected copies"
WORKERS, FREQUENCY = 2, 4
ELEMENTS, VECTORS = 10_000_000, 4


def stepping(network: Network, rows: int, threads: int, pipe: Any) -> None:
    """Gets so many seconds, answers with the rows a second of the clock, and of processor time; until it gets none."""
    step = ours(network, rows, threads=threads)
    step()
    pipe.send(True)
    while seconds := pipe.recv():
        begun, begun_busy, done = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() < begun + seconds:
            step()
            done += rows
        pipe.send((done / (time.perf_counter() - begun), done / (time.process_time() - begun_busy)))


class Side:
    """Processes that step at the same time."""

    def __init__(self, network: Network, rows: int, threads: int, copies: int) -> None:
        self._ends = [spawn.Pipe() for _ in range(copies)]
        for _, theirs in self._ends:
            spawn.Process(target=stepping, args=(network, rows, threads, theirs), daemon=True).start()
        assert all(mine.recv() for mine, _ in self._ends)

    def rates(self, seconds: float) -> tuple[float, float]:
        """Rows a second of all together by the clock, and of one by processor time."""
        for mine, _ in self._ends:
            mine.send(seconds)
        found = [mine.recv() for mine, _ in self._ends]
        return sum(rate for rate, _ in found), statistics.mean(rate for _, rate in found)

    def end(self) -> None:
        for mine, _ in self._ends:
            mine.send(0)


@bench(
    "threads",
    {
        (network,): [
            Line(f"{network.name}, 4096 rows, best turns", "clock", f"{APART}, clock", 0.9),
            Line(f"{network.name}, 4096 rows, processor time", "busy", f"{APART}, busy"),
            Line(f"{network.name}, 4096 rows, median of the turns", "median", f"{APART}, median"),
        ]
        for network in (SMALL, WIDE)
    },
    once, "rows/s", {"turns": 2}, seconds=60.0, turns=15, rows=4096,
)  # fmt: skip
def threads(run: Run, network: Network) -> Sides:
    """Two threads of one worker on a step, against two unconnected copies with one thread each, in processes of their
    own."""
    count = min(2, len(os.sched_getaffinity(0)))
    sides = {"": Side(network, run.rows, count, 1), f"{APART}, ": Side(network, run.rows, 1, count)}
    turns = [{name: side.rates(run.seconds / run.turns / 2) for name, side in sides.items()} for _ in range(run.turns)]
    for side in sides.values():
        side.end()
    found = {f"{name}{kind}": max(turn[name][at] for turn in turns) for name in sides
             for kind, at in {"clock": 0, "busy": 1}.items()}  # fmt: skip
    return found | {f"{name}median": statistics.median(turn[name][0] for turn in turns) for name in sides}


class Rounds(ArenaRun):
    """An arena whose slots are filled once, and its workers."""

    def __init__(self, rows: int) -> None:
        super().__init__(WORKERS, FREQUENCY, SMALL.spec, slots=SMALL.slots(rows, 8))
        self.log = _native.RoundLogThread(self.ring)
        self.log.start()
        self._rows = [rows] * WORKERS * FREQUENCY
        for at in range(2 * len(self._rows)):
            fill(view(self.arena.slot_address(at), self.slots.slot_bytes), self.slots, SMALL.batch(rows))

    def begin(self) -> None:
        """The next round's slots are full."""
        first = self.next_round * len(self._rows)
        self.ingest.fill_round(round=self.next_round, first_slot=first, rows=self._rows, closed=True)
        self.next_round += 1

    def work(self, index: int) -> None:
        worker, plan = self.crew[index]
        worker.run_closed_round(plan)


@bench(
    "workers", [Line(f"2 workers, {SMALL.name}", "workers", APART, 0.9)],
    once, "rows/s", {"rows": 256}, seconds=20.0, rows=4096,
)  # fmt: skip
def workers(run: Run) -> Sides:
    """Rounds of two workers, four steps each between two averagings, against two unconnected copies of the step. The
    least time of many rounds."""
    rounds, copies = Rounds(run.rows), [ours(SMALL, run.rows) for _ in range(WORKERS)]
    pool = run.stack.enter_context(ThreadPoolExecutor(WORKERS))

    def average() -> None:
        rounds.begin()
        list(pool.map(rounds.work, range(WORKERS)))

    def alone() -> None:
        list(pool.map(lambda index: [copies[index]() for _ in range(FREQUENCY)], range(WORKERS)))

    best = least_times({"workers": average, APART: alone}, run.seconds)
    assert rounds.arena.progress()["finished_round"] == rounds.next_round - 1
    return {name: WORKERS * FREQUENCY * run.rows / seconds for name, seconds in best.items()}


@bench(
    "average", [Line("10 M float32 of 4 workers", "average", "memcpy", 1.0)], best_times(turns=3), "GB/s", seconds=5.0
)  # fmt: skip
def average(run: Run) -> Sides:
    """The averaging of the vectors of four workers against memcpy of the same memory, one core. Bandwidth counts the
    bytes read and written: five vectors for the mean of four, two for a copy."""
    size = 4 * ELEMENTS
    layout = _native.StateLayout.make([_native.StateBlockSpec("x", "parameters", "learned", (ELEMENTS,))])
    vectors = [aligned(size) for _ in range(VECTORS)]
    for seed, vector in enumerate(vectors):
        vector.view(np.float32)[:] = np.random.default_rng(seed).standard_normal(ELEMENTS, np.float32)
    start, mean, copy = aligned(size), aligned(size), aligned(size)
    workers = [(vector.ctypes.data, 1.0 + at) for at, vector in enumerate(vectors)]

    def averaged() -> None:
        _native.average(layout, start.ctypes.data, workers, mean.ctypes.data)

    averaged()
    weights = np.arange(1, VECTORS + 1) / np.arange(1, VECTORS + 1).sum()
    heads = [vector.view(np.float32)[:1000].astype(float) for vector in vectors]
    expected = sum(weight * head for weight, head in zip(weights, heads, strict=True))
    assert np.array_equal(mean.view(np.float32)[:1000], expected.astype(np.float32))
    return {
        "average": (averaged, (VECTORS + 1) * size / 1e9),
        "memcpy": (lambda: ctypes.memmove(copy.ctypes.data, vectors[0].ctypes.data, size), 2 * size / 1e9),
    }


CACHE = "Vowpal Wabbit's cache"
BITS, PAIRS, PASSES = 22, 80, 4
JOB = {
    "records": {"format": "msgpack"},
    "columns": {
        "wide": {"kind": "sparse", "buckets": 1 << BITS, "most": 4096},
        "late": {"role": "label", "classes": ["-1", "1"]},
    },
    "model": {"layers": [], "loss": "binary_cross_entropy"}, "optimizer": {"name": "adagrad", "learning_rate": 0.5},
}  # fmt: skip
Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def table(count: int) -> Table:
    """Indexes and values [count, PAIRS], some far more frequent than others, and labels that can be learned."""
    random = np.random.default_rng(0)
    index = ((1 << BITS) * random.random((count, PAIRS)) ** 3).astype(np.int64)
    value = random.uniform(0.01, 0.2, (count, PAIRS)).astype(np.float32)
    return index, value, np.where((index % 7 - 3).sum(1) > 0, 1, -1)


class Ours:
    """Rows in slots of `batch`, and as records; a plan over a state of its own."""

    def __init__(self, rows: Table, batch: int) -> None:
        job = Job.from_tables({**JOB, "train": {"batch_rows": batch}})
        model, self.batch = Model(job.model_spec()), batch
        self.slots = [RowSlot(job.schema, batch, "msgpack") for _ in range(len(rows[2]) // batch)]
        self.records = [
            msgpack.packb({"wide": [*zip(*pairs, strict=True)], "late": str(label)}, use_single_float=True)
            for *pairs, label in zip(*(each.tolist() for each in rows), strict=True)
        ]
        self.memories = [model.initial_state(1), *(aligned(model.statistics_bytes) for _ in range(2))]
        self.plan = model.compile("cpu", self.slots[0].layout, *self.memories)
        self.plan.step.learning_rate, self.plan.step.number = 0.5, 100
        self.decoded()

    def decoded(self) -> None:
        """Every slot filled and trained, one after the other."""
        for at, slot in enumerate(self.slots):
            slot.filler.open(slot.slot)
            for record in self.records[at * self.batch : (at + 1) * self.batch]:
                slot.filler.fill(record)
            assert slot.filler.close() == self.batch
            self.plan.train(int(slot.slot.ctypes.data))

    def stepped(self) -> None:
        for slot in self.slots:
            self.plan.train(int(slot.slot.ctypes.data))


class Vowpal:
    """VW's command over a cache that its first run has written."""

    def __init__(self, rows: Table, folder: Path) -> None:
        text = folder / "rows.vw"
        with text.open("w") as file:
            for index, value, label in zip(*rows, strict=True):
                pairs = " ".join(f"{at}:{by:.4f}" for at, by in zip(index, value, strict=True))
                file.write(f"{label} | {pairs}\n")
        self.command = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-b", str(BITS), "--loss_function", "logistic",
                        "--noconstant", "--cache_file", str(folder / "rows.cache")]  # fmt: skip
        subprocess.run([*self.command, "-d", str(text)], check=True)
        text.write_text("")

    def passes(self, count: int) -> None:
        """Passes over the cache, in one process."""
        subprocess.run([*self.command, "--passes", str(count), "--holdout_off"], check=True)


def cpu_s() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


@bench(
    "sparse_linear",
    [
        Line("step of 256 rows", "step 256", CACHE, 3.0),
        Line("step of 32 rows", "step 32", CACHE, 3.0),
        Line("decode and step of 256 rows", "decode 256", CACHE),
    ],
    once, f"rows/s of {PAIRS} pairs", {"rows": 4096}, ("vowpalwabbit",), seconds=30.0, rows=32768,
)  # fmt: skip
def sparse_linear(run: Run) -> Sides:
    """Steps over slots in memory, and rows of msgpack decoded and trained, against Vowpal Wabbit over its own cache.
    The least processor time of many runs; Vowpal Wabbit's is that of two threads."""
    rows = table(run.rows)
    vowpal = Vowpal(rows, run.folder)
    large, small = Ours(rows, 256), Ours(rows, 32)
    calls = {
        "one pass": lambda: vowpal.passes(1), "more passes": lambda: vowpal.passes(1 + PASSES),
        "step 256": large.stepped, "step 32": small.stepped, "decode 256": large.decoded,
    }  # fmt: skip
    best = least_times(calls, run.seconds, cpu_s, turns=2)
    begun, ended = best.pop("one pass"), best.pop("more passes")
    rival = run.rows * PASSES / max(ended - begun, 1e-9)  # without a process's start and end
    return {CACHE: rival, **{name: run.rows / seconds for name, seconds in best.items()}}
