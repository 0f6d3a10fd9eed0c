"""Plans on a GPU through CuPy: the host's kernel text by NVRTC, cuBLAS, a captured graph per phase and slot buffer.

Runs in the worker process; CuPy is imported when a plan is compiled. State lives on the device between begin_round()
and end_round(); without them every call copies it both ways.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.backends._cublas import PLAIN, TRANSPOSED, WORKSPACE_BYTES, Cublas
from streamtrain.compute.backends._device import TO_DEVICE, TO_HOST, Device, import_cupy, instances_of
from streamtrain.compute.backends._source import Instance
from streamtrain.compute.spec import Argument, Call, Chain, PerRow, Program, Ref, Refs, flat, refs_of
from streamtrain.errors import StreamtrainError

HELP = "an NVIDIA GPU through CuPy, one worker per device"
PRIORITY = 100
PRIORITY_NAME = "BACKEND_PRIORITY_GPU"
CALLS_OUT = False
TILE_ROWS = 0
SLOT_BUFFERS = 2    # one is computed on while the other is filled
STEPS_AHEAD = 64    # step blocks in pinned memory: steps that may be enqueued before they are collected


def answers() -> str | None:
    """Why this backend cannot be used; None if it can."""
    try:
        cupy = import_cupy()
    except ImportError as error:
        return f"CuPy is not installed ({error}); install the extra cuda12 or cuda13"
    try:
        count = device_count()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device answers ({error})"
    return None if count > 0 else "no CUDA device found"


def device_count() -> int:
    return int(import_cupy().cuda.runtime.getDeviceCount())


def most_rows(program: Program) -> int:
    """Returns the largest number of rows of any call. A stack has several rows for each of the batch's."""
    calls = (call for phase in program.phases.values() for call in flat(phase))
    times = [arg.shape[0].times for call in calls for arg in refs_of(call.args)
             if arg.shape and isinstance(arg.shape[0], PerRow)]  # fmt: skip
    return program.rows * max(times, default=1)


def chain_of(launch: Chain) -> tuple[Instance, ...]:
    return tuple((call.op, call.types) for call in launch.calls)


class CudaPlan:
    """The phases of a program on one device."""

    def __init__(self, program: Program, addresses: tuple[int, int, int], device: int) -> None:
        self.program, self.device = program, Device(device)
        self.host = dict(zip(("state", "base", "share"), addresses, strict=True))
        statistics_bytes = program.state.statistics_bytes
        self.sizes = {"state": program.state.learned_bytes, "base": statistics_bytes, "share": statistics_bytes}
        sizes = {**self.sizes, "work": program.workspace_bytes, "step": _native.STEP_BYTES}
        self.memory = {name: self.device.buffer(size) for name, size in sizes.items()}
        self.slots = [self.device.buffer(program.slot_bytes) for _ in range(SLOT_BUFFERS)]
        self._ones_count = most_rows(program)
        self._ones, self.workspace = self.device.buffer(self._ones_count * 4), self.device.buffer(WORKSPACE_BYTES)
        self.ones = int(self._ones.data.ptr)
        with self.device.handle:
            self.cublas = Cublas(self.device.cupy, self.device.compute.ptr, self.workspace.data.ptr)
            self.blocks = self.device.cupy.cuda.alloc_pinned_memory(STEPS_AHEAD * _native.STEP_BYTES)
        self.filled = [self.device.event() for _ in self.slots]
        self.used = [self.device.event() for _ in self.slots]
        self.enqueued = self.turn = 0
        self.in_round = False
        self.step_address = self.output_address = 0   # of the plan this belongs to
        self.tables: list[Any] = []   # of addresses
        self._constants()
        launches = [launch for phase in program.phases for launch in program.kernels(phase)]
        self.device.load(instances_of((launch.op, launch.types) for launch in launches if isinstance(launch, Call)),
                         [chain_of(launch) for launch in launches if isinstance(launch, Chain)])
        self.graphs = {phase: self._capture(phase) for phase in program.phases}

    def _constants(self) -> None:
        compute, work = self.device.compute, int(self.memory["work"].data.ptr)
        ones = np.ones(self._ones_count, np.float32).tobytes()
        places = [(work + offset, content) for offset, content in self.program.constants]
        with self.device.handle:
            for to, content in [*places, (self.ones, ones)]:
                kept = ctypes.create_string_buffer(content, len(content))
                self.device.copy(to, ctypes.addressof(kept), len(content), TO_DEVICE, compute)
                compute.synchronize()

    def _capture(self, phase: str) -> list[Any]:
        """A graph per slot buffer. First everything runs once uncaptured, on an empty slot: weight 0, nothing changes,
        but libraries make what they make at the first call."""
        graphs, compute = [], self.device.compute
        with self.device.handle, compute:
            for slot in self.slots:
                launches = [self.launcher(call, slot.data.ptr) for call in self.program.kernels(phase)]
                for launch in launches:
                    launch()
                compute.synchronize()
                compute.begin_capture()
                for launch in launches:
                    launch()
                graphs.append(compute.end_capture())
        return graphs

    def address(self, ref: Ref, slot: int) -> int:
        place = self.program.place(ref)
        return place.offset + (slot if place.memory == "slot" else int(self.memory[place.memory].data.ptr))

    def value(self, arg: Argument, slot: int) -> int | float:
        """Returns an argument as a kernel takes it.

        An array becomes its address, several arrays the address of a table of their addresses.
        """
        if isinstance(arg, Refs):
            return self.table(np.array([self.address(ref, slot) for ref in arg.refs], np.uint64))
        if isinstance(arg, Ref):
            return self.address(arg, slot)
        if isinstance(arg, PerRow):
            return int(arg)   # a graph's launches are fixed
        return 0 if arg is None else arg

    def table(self, addresses: NDArray[np.uint64]) -> int:
        """Copies the addresses to the device and returns where they lie there. They stay as long as the plan lives."""
        self.tables.append(self.device.buffer(addresses.nbytes))
        at = int(self.tables[-1].data.ptr)
        self.device.copy(at, int(addresses.ctypes.data), addresses.nbytes, TO_DEVICE, self.device.compute)
        self.device.compute.synchronize()
        return at

    def launcher(self, call: Call | Chain, slot: int) -> Callable[[], None]:
        """Returns a function that runs the call on the compute stream, with addresses for this slot buffer."""
        if isinstance(call, Chain):
            chain, of_each = chain_of(call), [[self.value(arg, slot) for arg in each.args] for each in call.calls]
            return lambda: self.device.launch_chain(chain, of_each)
        values = [self.value(arg, slot) for arg in call.args]
        op = ops.get(call.op)
        if (own := op.on_cuda) is not None:
            return lambda: own(self, *values)
        return lambda: self.device.launch(op, call.types, values)

    # what an op's own way is made of: OnCuda

    def product(
        self, c: int, a: int, b: int, rows: int, inner: int, columns: int, a_transposed: bool = False,
        b_transposed: bool = False,
    ) -> None:
        """By cuBLAS, to which what is [r, c] to us is [c, r]: it multiplies b and a."""
        b_op, a_op = (TRANSPOSED if each else PLAIN for each in (b_transposed, a_transposed))
        b_stored, a_stored = inner if b_transposed else columns, rows if a_transposed else inner
        self.cublas.product(b_op, a_op, columns, rows, inner, b, b_stored, a, a_stored, c, columns)

    def launch(self, op: str, *arguments: Any) -> None:
        self.device.launch(ops.get(op), "", list(arguments))

    # Rounds and steps

    def copy(self, name: str, kind: int) -> None:
        """state, base or share between host and device, on the compute stream."""
        if self.host[name]:
            here, there = self.host[name], int(self.memory[name].data.ptr)
            to, source = (there, here) if kind == TO_DEVICE else (here, there)
            self.device.copy(to, source, self.sizes[name], kind, self.device.compute)

    def begin_round(self) -> None:
        """The device takes state, base and share from the host."""
        with self.device.handle:
            for name in self.sizes:
                self.copy(name, TO_DEVICE)
            self.device.compute.synchronize()   # the caller may write to them from now on
        self.in_round = True

    def end_round(self) -> None:
        """The host takes state and share from the device; nothing where begin_round() has not given them to it."""
        if not self.in_round:
            return
        with self.device.handle:
            for name in ("state", "share"):
                self.copy(name, TO_HOST)
            self.device.compute.synchronize()
        self.in_round = False

    def upload(self, slot: int, at: int) -> None:
        """A slot into slot buffer `at` on the upload stream, once the step enqueued on that buffer is done with it."""
        stream = self.device.upload
        stream.wait_event(self.used[at])   # not recorded yet: passes
        self.device.copy(int(self.slots[at].data.ptr), slot, self.program.slot_bytes, TO_DEVICE, stream)
        self.filled[at].record(stream)

    def enqueue(self, phase: str, slot: int) -> None:
        """Uploads a slot and launches a phase with the plan's step block as it stands; returns at once.

        The slot must stay until collect(). Raises StreamtrainError when STEPS_AHEAD steps wait for it already.
        """
        if self.enqueued == STEPS_AHEAD:
            raise StreamtrainError(f"CUDA: expected at most {STEPS_AHEAD} steps before collect(), got one more")
        device, at = self.device, self.turn % SLOT_BUFFERS
        compute, step = device.compute, int(self.memory["step"].data.ptr)
        block = int(self.blocks.ptr) + self.enqueued * _native.STEP_BYTES
        ctypes.memmove(block, self.step_address, _native.STEP_BYTES)
        with device.handle:
            self.upload(slot, at)
            device.copy(step, block, _native.STEP_BYTES, TO_DEVICE, compute)
            compute.wait_event(self.filled[at])
            self.graphs[phase][at].launch(compute)
            self.used[at].record(compute)
            device.copy(block, step, _native.STEP_BYTES, TO_HOST, compute)
        self.turn += 1
        self.enqueued += 1

    def collect(self) -> int:
        """Waits for all enqueued steps; the address of their step blocks, in order, valid until the next enqueue()."""
        with self.device.handle:
            self.device.compute.synchronize()
        self.enqueued = 0
        return int(self.blocks.ptr)

    def run(self, phase: str, slot: int) -> None:
        """One step, waited for. Outside a round state, base and share are copied in before and out after."""
        alone = not self.in_round
        if alone:
            self.begin_round()
        assert self.enqueued == 0   # its results would be lost
        self.enqueue(phase, slot)
        ctypes.memmove(self.step_address, self.collect(), _native.STEP_BYTES)
        if alone and phase != "predict":
            self.end_round()
        self.in_round = not alone

        if phase == "predict":
            self._bring_output()

    def _bring_output(self) -> None:
        output = self.program.output
        with self.device.handle:
            compute = self.device.compute
            self.device.copy(self.output_address, self.address(output, 0), int(output.elements) * 4, TO_HOST, compute)
            compute.synchronize()


def compile(
    program: Program, addresses: tuple[int, int, int], isa: str = "", device: int = 0, threads: int = 1
) -> _native.Plan:
    """A plan on device `device` modulo their number; threads are the CPU's."""
    runner = CudaPlan(program, addresses, device)
    plan = _native.ForeignPlan(
        program.rows, program.output.shape[1], {phase: partial(runner.run, phase) for phase in program.phases},
        runner.begin_round, runner.end_round, lambda slot: runner.enqueue("train", slot), runner.collect, STEPS_AHEAD,
    )
    runner.step_address, runner.output_address = plan.step.address, plan.output_address
    plan._device_plan = runner
    return plan


def register(address: int, size_bytes: int, device: int = 0) -> bool:
    """Pins shared memory for this process; False, with a warning, if that cannot be."""
    return Device(device).register(address, size_bytes)
