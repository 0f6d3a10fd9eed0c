"""Models on one synthetic batch, in real plans; and NVRTC without a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slots import set_rows

from streamtrain import _native
from streamtrain.compute import backends, losses, ops
from streamtrain.compute.backends._device import Device
from streamtrain.compute.bound import bound
from streamtrain.compute.builder import TRAINING
from streamtrain.compute.input import dtype_of
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.spec import DTYPES
from streamtrain.compute.state import block_view
from streamtrain.compute.stateful_inputs import BLOCKS, feeds
from tests import oracles

BAGS = [   # name, embed, pool, scales: two of them go to the outputs
    ("tags", 3, "mean", ""), ("words", 2, "sum", "words.scales"), ("wide", 0, "sum", "wide.scales"),
    ("line", 0, "mean", ""), ("best", 3, "max", ""), ("marks", 2, "max", "marks.scales"),
]
CLASSES = {"binary": 2, "class": 3, "number": 0, "count": 0}   # by the kind of a label


def spec_of(
    loss: str = "binary_cross_entropy", layers: Sequence[Mapping[str, Any]] = (), optimizer: str = "adam",
    numbers: int = 5, standardize: bool = False, categories: int = 0, vectors: Sequence[int] = (),
    bags: Sequence[int] = (), held: Sequence[Mapping[str, Any]] = (), pixels: Sequence[int] = (),
    clips: Sequence[int] = (), graph: Sequence[Mapping[str, Any]] = (), settings: Mapping[str, Any] | None = None,
    heads: Sequence[tuple[str, Any, Mapping[str, Any]]] = (), **label: Any,
) -> dict[str, Any]:
    """A model spec with few columns; `settings`: of the loss; `heads`: of several name, loss and the rest."""
    tables = [{"name": f"c{at}", "buckets": 7, "embed": 3 + at} for at in range(categories)]
    classes = CLASSES[losses.label_kind(loss)]
    shape = {"numbers": numbers, "standardize": [standardize] * numbers, "categories": tables, "classes": classes}
    shape["vectors"] = [{"size": size, "standardize": standardize} for size in vectors]
    shape["vectors"] += [{"size": n, "standardize": standardize, "block": f"audio{at}"} for at, n in enumerate(clips)]
    shape["bags"] = [bag_of(at) for at in bags]
    shape["held"] = list(held)
    shape["pixels"] = [{"block": f"image{at}", "size": size} for at, size in enumerate(pixels)]
    spec: dict[str, Any] = {"input": shape | label, "layers": list(layers), "optimizer": {"name": optimizer}}
    if not heads:
        spec["loss"] = loss if settings is None else {"name": loss, **settings}
    else:
        spec["heads"] = [{"name": name, "loss": loss} | rest for name, loss, rest in heads]
        spec["input"]["labels"] = [
            {"name": name, "block": f"label:{at}", "classes": CLASSES[losses.label_kind(str(loss))],
             "standardize_label": rest.get("standardize_label", False), "partial": rest.get("partial", False)}
            for at, (name, loss, rest) in enumerate(heads)
        ]  # fmt: skip
    columns = [["first", 0, 2], ["rest", 2, 5]]   # of the numbers
    return {**spec, "graph": {"columns": columns, "vertices": list(graph)}} if graph else spec


def bag_of(at: int) -> dict[str, Any]:
    """A bag of a model spec."""
    name, embed, pool, scales = BAGS[at]
    sizes = {"buckets": 7, "embed": embed, "width": 4, "most": 6}
    return {"name": name, "block": name, **sizes, "pool": pool, "scales": scales}


class Rig:
    """A model, its state and a slot holding one batch; `plan(backend)` compiles over memory of its own."""

    def __init__(
        self, spec: Mapping[str, Any], rows: int = 50, capacity: int = 64, seed: int = 1, network: Any = None
    ) -> None:
        self.model = Model(spec, network)
        self.rows, self.rng = rows, np.random.default_rng(seed)
        shape = self.model.parsed.input
        blocks = [(name, dtype_of(name, columns), len(columns)) for name, columns in shape.blocks.items()]
        blocks += [("categories", "i32", len(shape.categories))] if shape.categories else []
        reads = [each for stateful in shape.stateful for each in feeds(stateful)]
        blocks += [(*BLOCKS[kind], reads.count(kind)) for kind in BLOCKS if kind in reads]
        blocks += [(each.block, "u8", each.size) for each in shape.pixels]
        for bag in shape.bags:
            blocks += [(bag.block, "i32", bag.width, True, bag.most)]
            blocks += [(bag.scales, "f32", bag.width, True, bag.most)] if bag.scales else []
        blocks += [*((head.block, head.label_dtype, 1) for head in self.model.parsed.heads), ("weight", "f32", 1)]
        self.layout = _native.SlotLayout.make(capacity, 4, blocks)
        self.slot = aligned(self.layout.slot_bytes)
        set_rows(self.slot, rows)
        self.blocks: dict[str, np.ndarray[Any, Any]] = {}
        for block in self.layout.blocks:
            if block.ragged:
                continue
            size_bytes = capacity * block.width * np.dtype(DTYPES[block.dtype]).itemsize
            view = self.slot[block.offset : block.offset + size_bytes].view(DTYPES[block.dtype])
            self.blocks[block.name] = view.reshape(capacity, block.width)
        self.fill()
        self.state = self.model.initial_state(seed)
        parameters = {block.name for block in self.model.blocks if block.group == "parameters"}
        outputs = {f"{head.outlet.output_layer}.weight" for head in self.model.parsed.heads}
        for name, view in self.model.views(self.state).items():
            # from 0 no gradient goes below the output layer, and a relu with no input lies on its edge
            if name in outputs or (name.endswith((".bias", ".shift")) and name in parameters):
                view[:] = self.rng.normal(0, 0.5, view.shape)
        self.base, self.share = aligned(self.model.statistics_bytes), aligned(self.model.statistics_bytes)
        self.base[:] = self.state[self.model.learned_bytes :]
        self.steps = 0

    def fill(self) -> None:
        """A fresh batch; its label depends on the first column."""
        rows, blocks = self.rows, self.blocks
        for view in blocks.values():
            view[:] = 0
        for name in self.model.parsed.input.blocks:
            blocks[name][:rows] = self.rng.normal(1, 2, blocks[name][:rows].shape)
        for each in self.model.parsed.input.pixels:
            blocks[each.block][:rows] = self.rng.integers(0, 256, (rows, each.size))
        self.fill_bags()
        if "held.numbers" in blocks:
            blocks["held.numbers"][:rows] = self.rng.normal(1, 2, blocks["held.numbers"][:rows].shape)
        if "held.times" in blocks:
            blocks["held.times"][:rows] = self.rng.integers(-1, 9, blocks["held.times"][:rows].shape) * 400
        for name in ("categories", "held.categories", "held.hashes"):
            if name in blocks:
                blocks[name][:rows] = self.rng.integers(0, 7, blocks[name][:rows].shape)
        first = next((name for name in ("numbers", "categories", "vectors") if name in blocks), "")
        driver = blocks[first][:rows, 0] if first else self.rng.normal(1, 2, rows)
        for at, head in enumerate(self.model.parsed.heads):
            kind = losses.label_kind(head.loss)
            label = {"binary": driver > 1, "class": np.clip(driver, 0, 2).astype(int), "number": 30 + 4 * driver,
                     "count": np.floor(abs(driver))}[kind]
            blocks[head.block][:rows, 0] = label
            if head.partial:
                blocks[head.block][at : rows : 3, 0] = -1 if kind == "class" else np.nan
        blocks["weight"][:rows, 0] = self.rng.uniform(0.5, 2, rows)
        blocks["weight"][rows // 2, 0] = 0

    def fill_bags(self) -> None:
        """Fills bags of up to 6 entries a row, some rows without; scales are as many as their indexes."""
        counts: dict[str, Any] = {}
        for block in self.layout.blocks:
            if not block.ragged:
                continue
            name = block.name.removesuffix(".scales")
            ends = counts.setdefault(name, np.cumsum(self.rng.integers(0, 7, self.rows)))
            self.slot[block.offset : block.values].view(np.uint32)[1 : self.layout.row_capacity + 1] = ends[-1]
            self.slot[block.offset : block.values].view(np.uint32)[1 : self.rows + 1] = ends
            values = self.slot[block.values : block.values + block.capacity * 4].view(DTYPES[block.dtype])
            scales = self.rng.normal(1, 0.5, ends[-1])
            values[: ends[-1]] = scales if block.dtype == "f32" else self.rng.integers(0, 7, ends[-1])

    @property
    def learned(self) -> Any:
        """The parameters, and what the optimizer keeps, as float32."""
        return self.state[: self.model.learned_bytes].view(np.float32)

    @property
    def address(self) -> int:
        return int(self.slot.ctypes.data)

    def plan(
        self, backend: str = "cpu", isa: str = "", copy: bool = False, phases: Sequence[str] = TRAINING,
        threads: int = 1,
    ) -> _native.Plan:
        """A plan over this rig's memory, or over copies of it kept as plan.state, plan.base, plan.share."""
        memory = [aligned(m.nbytes) for m in (self.state, self.base, self.share)] if copy else []
        for into, source in zip(memory, (self.state, self.base, self.share), strict=False):
            into[:] = source
        state, base, share = memory or (self.state, self.base, self.share)
        if backend == "precise":
            program = self.model.program(self.layout, phases, "reference")
            addresses = (bound(state, 0, ""), bound(base, 0, ""), bound(share, 0, ""))
            plan: Any = backends.get("reference").compile(program, addresses, precise=True)
        else:
            plan = self.model.compile(
                backend, self.layout, state, base, share, phases=phases, isa=isa, threads=threads
            )
        plan.state, plan.base, plan.share = state, base, share
        return plan

    def step(self, plan: _native.Plan, learning_rate: float = 0.01, number: int = 0) -> float:
        """One training step; the mean loss before it."""
        self.steps = number or self.steps + 1
        step = plan.step
        step.learning_rate = learning_rate
        step.number = self.steps
        plan.train(self.address)
        return step.objective_sum / step.weight_sum if step.weight_sum else 0.0

    def train(self, steps: int = 3, refills: bool = False, plan: Any = None, **options: Any) -> Any:
        """Steps of one batch, or of a fresh one each, by a plan with these options; returns the plan."""
        plan = plan or self.plan(**options)
        for _ in range(steps):
            if refills:
                self.fill()
            self.step(plan)
        return plan

    def outcome(self, refills: bool = False, **options: Any) -> bytes:
        """The bits of three steps, of one batch or of three, and of a prediction; `options`: of the plan."""
        plan = self.plan(**options)
        self.statistics(plan)
        self.train(3, refills, plan)
        plan.predict(self.address)
        return bytes(self.state.tobytes() + self.share.tobytes() + plan.output()[: self.rows].tobytes())

    def statistics(self, plan: Any) -> None:
        """Sets the statistics as after a lineage's first round: the base has the batch's mean and variance."""
        counts = self.blocks["weight"][: self.rows, 0] > 0
        for block in self.model.blocks:
            if block.rule == "moments":
                table = block_view(block, plan.base, block.part_offset)
                rows = self.blocks[block.name.partition(".")[2]][: self.rows][counts].astype(np.float64)
                rows = rows[~np.isnan(rows).any(1)]
                table[:, :3] = np.stack([np.full(len(table), len(rows)), rows.mean(0), rows.var(0) * len(rows)], 1)


@pytest.fixture
def rig() -> type[Rig]:
    return Rig


@pytest.fixture(autouse=True)
def reference_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the tests' own backend, `reference`, to the registry."""
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(Path(oracles.__path__[0]) / "backends")])


@pytest.fixture
def spec() -> Callable[..., dict[str, Any]]:
    return spec_of


@pytest.fixture(scope="module")
def device() -> Device:
    """A GPU that has loaded every op."""
    if reason := backends.get("cuda").answers():
        pytest.skip(reason)
    found = Device(0)
    found.load({(op.name, types) for op in ops.load().values() if not op.host_only for types in op.types})
    return found


class Nvrtc:
    """libnvrtc of the nvidia-cuda-nvrtc wheel."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("nvidia")
        roots = found.submodule_search_locations if found and found.submodule_search_locations else []
        paths = [path for root in roots for path in Path(root).glob("*/lib/libnvrtc.so.*")]
        if not paths:
            pytest.skip("libnvrtc is not installed (pip install nvidia-cuda-nvrtc-cu12)")
        self.library: Any = ctypes.CDLL(str(paths[0]))

    def compile(self, source: str, names: Sequence[str], arch: str, options: Sequence[str]) -> dict[str, str]:
        """Compiles for `arch` ("sm_90", to PTX "compute_90"); lowered name by name expression. AssertionError with the
        log otherwise."""
        nvrtc, program = self.library, ctypes.c_void_p()
        assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
        try:
            for name in names:
                assert nvrtc.nvrtcAddNameExpression(program, name.encode()) == 0
            flags = [flag.encode() for flag in (*options, f"--gpu-architecture={arch}")]
            code = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
            assert code == 0, self.log(program)
            assert arch.startswith("compute_") or self.binary_size(program) > 1000
            return {name: self.lowered(program, name) for name in names}
        finally:
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    def log(self, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, text)
        return text.value.decode()

    def binary_size(self, program: ctypes.c_void_p) -> int:
        size = ctypes.c_size_t()
        assert self.library.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
        return size.value

    def lowered(self, program: ctypes.c_void_p, name: str) -> str:
        found = ctypes.c_char_p()
        assert self.library.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(found)) == 0, name
        return (found.value or b"").decode()


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    return Nvrtc()
