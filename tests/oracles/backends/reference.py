"""A backend that runs plans in NumPy by each op's oracle, slowly. `precise` computes in float64 throughout."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.bound import at_address
from streamtrain.compute.spec import DTYPES, Arg, Argument, Array, Call, Outside, Program, Ref, Refs, flat
from tests.oracles import ops as oracles

HELP = "NumPy"
PRIORITY = -1
PRIORITY_NAME = "BACKEND_PRIORITY_REFERENCE"
CALLS_OUT = True
TILE_ROWS = 0


def answers() -> str | None:
    """Why this backend cannot be used; None if it can."""
    return None


def device_count() -> int:
    """GPUs it has."""
    return 0


class ReferencePlan:
    """The phases of a program over NumPy views of the plan's memories."""

    def __init__(self, program: Program, addresses: tuple[int, int, int], precise: bool) -> None:
        self.program, self.precise = program, precise
        self.step: _native.StepBlock | None = None
        self.output: Array | None = None
        statistics_bytes = program.state.statistics_bytes
        sizes = {"state": program.state.state_bytes, "base": statistics_bytes, "share": statistics_bytes}
        self.memories = {
            name: at_address(address, sizes[name])
            for name, address in zip(sizes, addresses, strict=True) if address
        }
        self.memories["work"] = np.zeros(program.workspace_bytes, np.uint8)
        for offset, content in program.constants:
            self.memories["work"][offset : offset + len(content)] = np.frombuffer(content, np.uint8)
        self.wide: dict[str, Array] = {}   # precise: the same memory with an f64 for every f32

    def array(self, ref: Ref) -> Array:
        """The view a Ref means."""
        place, dtype = self.program.place(ref), np.dtype(DTYPES[ref.dtype])
        if self.precise and ref.dtype == "f32":
            at = place.offset // 4
            return self.wide[place.memory][at : at + ref.elements].reshape(ref.shape)
        memory = self.memories[place.memory]
        return memory[place.offset : place.offset + ref.elements * dtype.itemsize].view(dtype).reshape(ref.shape)

    def run(self, phase: str, slot: int) -> None:
        self.memories["slot"] = at_address(slot, self.program.slot_bytes)
        if self.precise and not any(phase in parts[1:] for parts in _native.PLAN_PHASES.values()):
            self.wide = {
                name: memory[: len(memory) // 4 * 4].view(np.float32).astype(np.float64)
                for name, memory in self.memories.items()
            }
        for call in flat(self.program.phases[phase]):
            self.run_call(call)
        if phase == "predict":
            assert self.output is not None
            self.output[:] = self.array(self.program.output)
        if self.precise and phase in ("train", "update"):
            learned = self.program.state.learned_bytes
            self.memories["state"][:learned].view(np.float32)[:] = self.wide["state"][: learned // 4]

    def run_call(self, call: Call | Outside) -> None:
        if isinstance(call, Outside):
            assert self.step is not None
            call.bind(*map(self._outside, call.args))(self.step.rows, 0)
            return
        op = ops.get(call.op)
        values = [self._value(call, arg, spec) for arg, spec in zip(call.args, op.args, strict=True)]
        with np.errstate(all="ignore"):
            oracles.of(op.name).reference(*values)

    def _value(self, call: Call, arg: Argument, spec: Arg) -> Any:
        if isinstance(arg, Refs):
            return [self.array(ref) for ref in arg.refs]
        if not isinstance(arg, Ref):
            return arg
        if spec.dtype == "step":
            return self._step(arg)
        return self._shaped(self.array(arg), [
            int(dim) if isinstance(dim, int) else self._size(call, dim) for dim in spec.shape
        ])  # fmt: skip

    def _step(self, ref: Ref) -> _native.StepBlock | None:
        """The plan's own, or one that lies in its workspace."""
        if ref.space == "step":
            return self.step
        return _native.StepBlock.at(int(self.memories["work"].ctypes.data) + self.program.place(ref).offset)

    def _outside(self, ref: Ref) -> Any:
        """Returns the argument that a call out of the plan gets."""
        if ref.space == "slot":
            return lambda slot: self.array(ref)   # of the one at hand
        return self.step if ref.space == "step" else self.array(ref)

    @staticmethod
    def _shaped(array: Array, shape: list[int]) -> Array:
        return array.reshape(shape)   # a view: plan memory is C-contiguous

    @staticmethod
    def _size(call: Call, name: str) -> int:
        names = [arg.name for arg in ops.get(call.op).args]
        found = call.args[names.index(name)]
        assert isinstance(found, int)
        return found


def compile(
    program: Program, addresses: tuple[int, int, int], isa: str = "", device: int = 0, threads: int = 1,
    precise: bool = False,
) -> _native.Plan:
    """A plan whose phases run here. State, base and share are changed in place, as on the CPU."""
    runner = ReferencePlan(program, addresses, precise)
    plan = _native.ForeignPlan(
        program.rows, program.output.shape[1], {phase: partial(runner.run, phase) for phase in program.phases},
        lambda: None, lambda: None,
    )
    runner.step = _native.StepBlock.at(plan.step.address)   # not plan.step: that would keep the plan alive for ever
    output = at_address(plan.output_address, plan.rows * plan.width * 4).view(np.float32)
    runner.output = output.reshape(plan.rows, plan.width)
    return plan


