"""A training step on a GPU (28-64-64-1, Adam): host time to enqueue it and steps a second against PyTorch eager on the
same GPU, each batch brought from pinned host memory; and a slot's way to the device against a plain cudaMemcpyAsync of
as many pinned bytes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from streamtrain import _native
from streamtrain.compute.backends import cuda
from streamtrain.compute.backends._device import TO_DEVICE
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from tests.bench.harness import LIMIT, Call, Line, Run, Sides, Value, absent, bench
from tests.bench.steps import SMALL, fill, pytorch_parts

STEPS = cuda.STEPS_AHEAD  # between two waits for the device, on all sides
ROWS = (256, 4096)
EAGER, FUSED, RESIDENT = "PyTorch eager", "PyTorch fused Adam", "PyTorch eager, batches on the GPU already"
COPY = "cudaMemcpyAsync"
Stretch = Callable[[], dict[str, float]]  # STEPS steps or copies: seconds of the host alone, seconds in all


def timed(each: Callable[[int], object], wait: Callable[[], object], work: float = 1.0) -> dict[str, float]:
    """`work`: what one of them counts as."""
    begun = time.perf_counter()
    for at in range(STEPS):
        each(at)
    enqueued = time.perf_counter()
    wait()
    return {"host": enqueued - begun, "all": time.perf_counter() - begun, "work": work}


class Ours:
    """A worker's plan over an arena of STEPS slots that is pinned as in the worker."""

    def __init__(self, rows: int) -> None:
        self.model, layout = Model(SMALL.spec), SMALL.slots(rows)
        self.slot_bytes = layout.slot_bytes
        self.arena = _native.Arena.create(
            workers=1, averaging_frequency=STEPS // 2, slot_count=STEPS, slot_layout=layout,
            state_layout=self.model.layout,
        )  # fmt: skip
        self.slots = [self.arena.slot_address(at) for at in range(STEPS)]
        for at, address in enumerate(self.slots):
            fill(view(address, layout.slot_bytes), layout, SMALL.batch(rows, at))
        self.pinned = cuda.register(self.arena.address, self.arena.bytes)
        rounds = _native.Worker(self.arena, 0)
        addresses = (rounds.state_address, rounds.base_address, rounds.share_address)
        state = self.model.initial_state(1)
        view(rounds.state_address, len(state))[:] = state
        self.plan = self.model.compile("cuda", layout, *addresses)
        self.plan.step.learning_rate, self.plan.step.number = 1e-3, 100
        self.plan.begin_round()

    def steps(self) -> dict[str, float]:
        return timed(lambda at: self.plan.enqueue(self.slots[at]), self.plan.collect)

    def check(self) -> None:
        """Checks that the timed steps trained: every loss is there and finite."""
        for address in self.slots:
            self.plan.enqueue(address)
        first = self.plan.collect()
        blocks = [_native.StepBlock.at(first + at * _native.STEP_BYTES) for at in range(STEPS)]
        assert all(0 < block.loss_sum < 1e9 and not block.not_finite for block in blocks)

    def uploads(self) -> dict[str, float]:
        """The plan's own copies, in its stream, behind its events."""
        device_plan = self.plan._device_plan
        with device_plan.device.handle:
            return timed(
                lambda at: device_plan.upload(self.slots[at], at % cuda.SLOT_BUFFERS),
                device_plan.device.upload.synchronize, self.slot_bytes / 1e9,
            )  # fmt: skip

    def plain_copies(self) -> Stretch:
        """The same bytes from memory that CUDA allocated, one call after the other."""
        device_plan = self.plan._device_plan
        device, size = device_plan.device, self.slot_bytes
        with device.handle:
            source = device.cupy.cuda.alloc_pinned_memory(size * STEPS)
        to, stream, copy = [int(slot.data.ptr) for slot in device_plan.slots], device.upload, device.runtime.memcpyAsync

        def stretch() -> dict[str, float]:
            with device.handle:
                return timed(
                    lambda at: copy(to[at % len(to)], source.ptr + at * size, size, TO_DEVICE, stream.ptr),
                    stream.synchronize, size / 1e9,
                )  # fmt: skip

        return stretch


KEPT: dict[int, Ours] = {}  # pinned memory that is unmapped stays registered


def eager(rows: int, fused: bool, resident: bool) -> Stretch:
    """The same steps in PyTorch: copy from pinned memory unless resident, forward, loss, backward, Adam."""
    import torch

    on = torch.device("cuda", 0)
    blocks = [SMALL.batch(rows, at) for at in range(STEPS)]
    batches = [
        tuple(torch.from_numpy(array).pin_memory() for array in (block["numbers"], block["label"][:, 0].copy()))
        for block in blocks
    ]
    if resident:
        batches = [tuple(array.to(on) for array in arrays) for arrays in batches]
    network = pytorch_parts(SMALL).to(on)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)
    loss = torch.nn.BCEWithLogitsLoss()

    def step(at: int) -> None:
        x, y = (array.to(on, non_blocking=True) for array in batches[at])
        optimizer.zero_grad()
        loss(network(x)[:, 0], y).backward()
        optimizer.step()

    return lambda: timed(step, lambda: torch.cuda.synchronize(on))


def absent_torch() -> str | None:
    if reason := absent("torch"):
        return reason
    import torch

    return None if torch.cuda.is_available() else "no PyTorch for this GPU"


def least(calls: Mapping[str, Call], run: Run) -> Mapping[str, Value]:
    """The host's microseconds and the rate of each, by the least times in turns, after two turns to warm up."""
    for call in calls.values():
        call()
    best = {name: dict.fromkeys(call(), float("inf")) for name, call in calls.items()}
    end, turns = time.perf_counter() + run.seconds, 0
    while time.perf_counter() < end or turns < 3:
        turns += 1
        for name, call in calls.items():
            took = call()
            best[name] = {part: min(best[name][part], took[part]) for part in took}
    return {
        name: {"host": its["host"] / STEPS * 1e6, "rate": its["work"] * STEPS / its["all"]}
        for name, its in best.items()
    }  # fmt: skip


@bench(
    "cuda",
    {
        ("step", rows): [
            Line(f"host time of a step, {rows} rows", "ours:host", f"{EAGER}:host", 30.0, LIMIT, unit="us"),
            Line(f"28-64-64-1 Adam {rows} rows", "ours:rate", f"{EAGER}:rate", 3.0),
            Line(f"28-64-64-1 Adam {rows} rows", "ours:rate", f"{FUSED}:rate"),
            Line(f"28-64-64-1 Adam {rows} rows", "ours:rate", f"{RESIDENT}:rate"),
        ]
        for rows in ROWS
    }
    | {
        ("copy", rows): [
            Line(f"copy to device, slot of {rows} rows", "upload:rate", f"{COPY}:rate", bar, unit="GB/s")
        ]
        for rows, bar in zip(ROWS, (None, 0.85), strict=True)   # a small slot's copy is shorter than the call
    },
    least, "steps/s", needs=(cuda.answers,), seconds=20.0,
)  # fmt: skip
def cuda_bench(run: Run, what: str, rows: int) -> Sides:
    """Steps on a GPU against PyTorch eager on it, and copies of slots against cudaMemcpyAsync."""
    ours = KEPT[rows] = KEPT.get(rows) or Ours(rows)
    if not ours.pinned:
        print("the slots are not pinned", file=sys.stderr)
    if what == "copy":
        return {"upload": ours.uploads, COPY: ours.plain_copies()}
    ours.check()
    without = absent_torch()
    forms = {EAGER: (False, False), FUSED: (True, False), RESIDENT: (False, True)}
    return {"ours": ours.steps, **{name: without or eager(rows, *form) for name, form in forms.items()}}
