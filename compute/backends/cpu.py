"""Plans run by native code: kernels of the selected instruction set over one workspace, on one core or several.

Work goes up to the rows present in a slot, not up to its capacity.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.bound import at_address
from streamtrain.compute.spec import (
    DTYPES,
    Arg,
    Array,
    Before,
    Call,
    Chain,
    InSlot,
    Outside,
    PerRow,
    Program,
    Ref,
    Refs,
    Step,
    Tiled,
    Turn,
    flat,
    launches,
    size_bytes,
)  # fmt: skip
from streamtrain.compute.tiling import row_bytes
from streamtrain.compute.workspace import key_of
from streamtrain.errors import UserMistake

HELP = "native kernels on the CPU, one thread per worker or several"
PRIORITY = 0
PRIORITY_NAME = "BACKEND_PRIORITY_CPU"
CALLS_OUT = True
TILE_ROWS = _native.CHAIN_ROWS   # of a step's tile: its activations stay in the L2; sums in float32 are no longer
MEMORIES = _native.PLAN_MEMORIES


def answers() -> str | None:
    """Why this backend cannot be used; None if it can."""
    return None


def device_count() -> int:
    """GPUs it has."""
    return 0


def value_bits(native_type: str, number: int | float) -> int:
    """The argument's bytes as a little-endian number."""
    if native_type == "f32":
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    if native_type == "f64":
        return int(struct.unpack("<Q", struct.pack("<d", number))[0])
    return int(number) & 0xFFFFFFFFFFFFFFFF


Cell = tuple[int, int, int, int, int]   # memory, bits, bytes of a row, own offset, step of an element


def arguments(program: Program, call: Call) -> list[tuple[Cell, list[Cell]]]:
    """Each argument of a call, and of a table of addresses what each is of."""
    op, found = ops.get(call.op), []
    for spec, arg, native_type in zip(op.args, call.args, op.signature(call.types), strict=True):
        table: list[Cell] = []
        if isinstance(arg, Refs):
            cell = (MEMORIES["addresses"], 0, 0, -1, 0)
            table = [address(program, call, spec, ref) for ref in arg.refs]
        elif isinstance(arg, Ref):
            cell = address(program, call, spec, arg)
        elif isinstance(arg, PerRow):
            cell = (MEMORIES["per_row"], arg.times, 0, -1, 0)
        elif isinstance(arg, Before):
            cell = (MEMORIES["before"], arg.times, 0, -1, 1)
        elif isinstance(arg, Turn):
            cell = (MEMORIES["turn"], 0, 0, -1, 0)
        else:
            cell = (MEMORIES["value"], 0 if arg is None else value_bits(native_type, arg), 0, -1, 0)
        found.append((cell, table))
    return found


def address(program: Program, call: Call, spec: Arg, ref: Ref) -> Cell:
    """Returns the cell of an array: memory, offset, row bytes, own offset and element bytes. Row bytes are 0 unless
    the array lies elsewhere for each tile. The own offset is that of a thread's private copy, else -1. Element bytes
    are 0 for the step block."""
    place = program.place(ref)
    is_local = place.memory == "work" and ref.name in program.local
    moves = place.memory == "slot" or (place.memory == "work" and not is_local)
    own = own_offset(program, ref, is_local) if is_local or ref.own else -1
    element = 0 if spec.dtype == "step" else size_bytes(ref.dtype, (1,))
    return MEMORIES[place.memory], place.offset, row_bytes(spec, ref, call) if moves else 0, own, element


def own_offset(program: Program, ref: Ref, is_local: bool) -> int:
    """Returns its offset in the private memory of a thread other than the first."""
    within = ref.start * np.dtype(DTYPES[ref.dtype]).itemsize if is_local else 0
    return program.own[key_of(ref, is_local)] + within


def compile(
    program: Program, addresses: tuple[int, int, int], isa: str = "", device: int = 0, threads: int = 1
) -> _native.Plan:
    """The native plan of a program over (state, base, share), whose tiles are dealt among so many threads."""
    outside: list[Outside] = []

    def entry(call: Call | Outside, chain: int) -> tuple[str, str, list[tuple[Cell, list[Cell]]], int, int]:
        if isinstance(call, Call):
            return call.op, call.types, arguments(program, call), 0, chain
        outside.append(call)
        return "", "", [], len(outside) - 1, 0

    def entries(steps: Iterable[Step]) -> list[tuple[bool, list[Any]]]:
        """Stretches of calls, and whether they are made tile by tile; the first of a chain says how many it has."""
        runs = groupby(steps, key=lambda step: id(step) if isinstance(step, Tiled) else 0)
        return [(tiles != 0, [
            entry(call, len(launch.calls) if isinstance(launch, Chain) and not at else 0)
            for launch in launches(run) for at, call in enumerate(flat([launch]))
        ]) for tiles, run in runs]  # fmt: skip

    output = program.output
    plan = _native.CpuPlan(
        {phase: entries(steps) for phase, steps in program.phases.items()}, program.workspace_bytes,
        program.constants, program.place(output).offset, program.rows, output.shape[1], *addresses, isa, len(outside),
        program.tile_rows, threads, program.own_bytes,
    )
    memories = {"work": plan.work_address, **dict(zip(("state", "base", "share"), addresses, strict=True))}
    step = _native.StepBlock.at(plan.step.address)   # not plan.step: that would keep the plan alive for ever
    for at, call in enumerate(outside):
        plan.set_outside(at, call.bind(*(step if arg.space == "step" else array(program, memories, arg)
                                         for arg in call.args)))
    return plan


def array(program: Program, memories: dict[str, int], ref: Ref) -> Array | InSlot:
    """The view a Ref means, of memory that the plan is bound to."""
    place, dtype = program.place(ref), np.dtype[Any](DTYPES[ref.dtype])

    def at(start: int) -> Array:
        raw = at_address(start + place.offset, ref.elements * dtype.itemsize)
        return raw.view(dtype).reshape(ref.shape)

    if place.memory == "slot":
        return at
    if not memories[place.memory]:
        raise UserMistake(f"plan: expected memory for {place.memory}, got none; give it to compile()")
    return at(memories[place.memory])
