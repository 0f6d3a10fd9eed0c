"""A training step on a GPU (28-64-64-1, Adam): host time to enqueue it and steps a second against PyTorch eager on the
same GPU, each batch brought from pinned host memory; and a slot's way to the device against a plain cudaMemcpyAsync of
as many pinned bytes. Without a GPU one line says so; without PyTorch its figures are null.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from slots import set_rows

from streamtrain import _native
from streamtrain.compute.backends import cuda
from streamtrain.compute.backends._device import TO_DEVICE
from streamtrain.compute.model import Model
from streamtrain.compute.state import view

FEATURES, LAYERS = 28, [64, 64]
STEPS = cuda.STEPS_AHEAD   # between two waits for the device, on all sides
HOST_BAR_US, STEPS_BAR, COPY_BAR = 30.0, 3.0, 0.85
ROWS = (256, 4096)
Stretch = Callable[[], tuple[float, float]]   # STEPS steps or copies: seconds of the host alone, seconds in all


def timed(each: Callable[[int], object], wait: Callable[[], object]) -> tuple[float, float]:
    begun = time.perf_counter()
    for at in range(STEPS):
        each(at)
    enqueued = time.perf_counter()
    wait()
    return enqueued - begun, time.perf_counter() - begun


class Ours:
    """A worker's plan over an arena of STEPS slots that is pinned as in the worker."""

    def __init__(self, rows: int) -> None:
        self.model = Model({
            "input": {"numbers": FEATURES}, "layers": [{"dense": size, "activation": "relu"} for size in LAYERS],
            "loss": "binary_cross_entropy", "optimizer": {"name": "adam"},
        })  # fmt: skip
        blocks = [("numbers", "f32", FEATURES), ("label", "f32", 1), ("weight", "f32", 1)]
        layout = _native.SlotLayout.make(rows, 1, blocks)
        self.slot_bytes = layout.slot_bytes
        self.arena = _native.Arena.create(
            workers=1, averaging_frequency=STEPS // 2, slot_count=STEPS, slot_layout=layout,
            state_layout=self.model.layout,
        )  # fmt: skip
        self.slots = [self.arena.slot_address(at) for at in range(STEPS)]
        for at, address in enumerate(self.slots):
            self.fill(view(address, layout.slot_bytes), layout, rows, at)
        self.pinned = cuda.register(self.arena.address, self.arena.bytes)
        rounds = _native.Worker(self.arena, 0)
        addresses = (rounds.state_address, rounds.base_address, rounds.share_address)
        state = self.model.initial_state(1)
        view(rounds.state_address, len(state))[:] = state
        self.plan = self.model.compile("cuda", layout, *addresses)
        step = self.plan.step
        step.learning_rate = 1e-3
        step.number = 100
        self.plan.begin_round()

    @staticmethod
    def fill(slot: Any, layout: _native.SlotLayout, rows: int, seed: int) -> None:
        for block, content in zip(layout.blocks, (*batch(rows, seed), np.ones(rows, np.float32)), strict=True):
            slot[block.offset : block.offset + content.nbytes].view(np.float32)[:] = content.reshape(-1)
        set_rows(slot, rows)

    def steps(self) -> tuple[float, float]:
        return timed(lambda at: self.plan.enqueue(self.slots[at]), self.plan.collect)

    def check(self) -> None:
        """What was timed trained: every loss is there and finite."""
        for address in self.slots:
            self.plan.enqueue(address)
        first = self.plan.collect()
        blocks = [_native.StepBlock.at(first + at * _native.STEP_BYTES) for at in range(STEPS)]
        assert all(0 < block.loss_sum < 1e9 and not block.not_finite for block in blocks)

    def uploads(self) -> tuple[float, float]:
        """The plan's own copies, in its stream, behind its events."""
        held = self.plan._device_plan
        with held.device.handle:
            return timed(
                lambda at: held.upload(self.slots[at], at % cuda.SLOT_BUFFERS), held.device.upload.synchronize
            )

    def plain_copies(self) -> Stretch:
        """The same bytes from memory that CUDA allocated, one call after the other."""
        held = self.plan._device_plan
        device, size = held.device, self.slot_bytes
        with device.handle:
            source = device.cupy.cuda.alloc_pinned_memory(size * STEPS)
        to, stream, copy = [int(slot.data.ptr) for slot in held.slots], device.upload, device.runtime.memcpyAsync

        def stretch() -> tuple[float, float]:
            with device.handle:
                return timed(
                    lambda at: copy(to[at % len(to)], source.ptr + at * size, size, TO_DEVICE, stream.ptr),
                    stream.synchronize,
                )

        return stretch


def batch(rows: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Numbers and 0/1 labels."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    return x, (x[:, 0] + rng.standard_normal(rows) > 0).astype(np.float32)


def eager(rows: int, fused: bool, resident: bool) -> Stretch:
    """The same steps in PyTorch: copy from pinned memory unless resident, forward, loss, backward, Adam."""
    import torch

    on = torch.device("cuda", 0)
    batches = [tuple(torch.from_numpy(array).pin_memory() for array in batch(rows, at)) for at in range(STEPS)]
    if resident:
        batches = [tuple(array.to(on) for array in arrays) for arrays in batches]
    parts: list[Any] = []
    for inputs, outputs in zip([FEATURES, *LAYERS], [*LAYERS, 1], strict=True):
        parts += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    network = torch.nn.Sequential(*parts[:-1]).to(on)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)
    loss = torch.nn.BCEWithLogitsLoss()

    def step(at: int) -> None:
        x, y = (array.to(on, non_blocking=True) for array in batches[at])
        optimizer.zero_grad()
        loss(network(x)[:, 0], y).backward()
        optimizer.step()

    return lambda: timed(step, lambda: torch.cuda.synchronize(on))


def least(stretches: dict[str, Stretch], seconds: float) -> dict[str, tuple[float, float]]:
    """The least host time and the least time in all of one step of each, in turns after two rounds to warm up."""
    best = dict.fromkeys(stretches, (float("inf"), float("inf")))
    for _ in range(2):
        for stretch in stretches.values():
            stretch()
    end, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turns < 3:
        turns += 1
        for name, stretch in stretches.items():
            host, whole = stretch()
            best[name] = (min(best[name][0], host / STEPS), min(best[name][1], whole / STEPS))
    return best


def show(bench: str, ours: float, rival: float | None, bar: float | None, unit: str) -> None:
    ratio = None if rival is None else round(ours / rival, 3)
    print(json.dumps({
        "bench": f"cuda {bench}", "ours": round(ours, 2), "rival": None if rival is None else round(rival, 2),
        "ratio": ratio, "bar": bar, "unit": unit,
    }), flush=True)  # fmt: skip


def torch_sees_the_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def measure_steps(ours: Ours, rows: int, seconds: float) -> None:
    stretches: dict[str, Stretch] = {"ours": ours.steps}
    if torch_sees_the_gpu():
        stretches["PyTorch eager"] = eager(rows, fused=False, resident=False)
        stretches["PyTorch fused Adam"] = eager(rows, fused=True, resident=False)
        stretches["PyTorch eager, batches on the GPU already"] = eager(rows, fused=False, resident=True)
    found = least(stretches, seconds)
    ours.check()
    host, whole = found.pop("ours")
    rival = found.get("PyTorch eager")
    show(f"host time of a step, {rows} rows", host * 1e6, rival and rival[0] * 1e6, HOST_BAR_US, "us, at most")
    for name, (_, its_whole) in found.items():
        bar = STEPS_BAR if name == "PyTorch eager" else None
        show(f"28-64-64-1 Adam {rows} rows", 1 / whole, 1 / its_whole, bar, f"steps/s, {name}")
    if not found:
        show(f"28-64-64-1 Adam {rows} rows", 1 / whole, None, STEPS_BAR, "steps/s, no PyTorch for this GPU")


def measure_copies(ours: Ours, rows: int, seconds: float) -> None:
    found = least({"ours": ours.uploads, "plain": ours.plain_copies()}, seconds)
    speed, plain = (ours.slot_bytes / found[name][1] / 1e9 for name in ("ours", "plain"))
    bar = COPY_BAR if rows == max(ROWS) else None   # a small slot's copy is shorter than the call
    pinned = "" if ours.pinned else ", not pinned"
    show(f"copy to device, slot of {rows} rows", speed, plain, bar, f"GB/s, cudaMemcpyAsync{pinned}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    reason = cuda.answers()
    if reason:
        print(json.dumps({"bench": "cuda", "skipped": reason}))
        return
    sides = {rows: Ours(rows) for rows in ROWS}   # all kept: pinned memory that is unmapped stays registered
    for rows, ours in sides.items():
        measure_steps(ours, rows, seconds * 0.4)
        measure_copies(ours, rows, seconds * 0.1)


if __name__ == "__main__":
    main()
