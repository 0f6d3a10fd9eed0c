"""Plans run by native code on one core: kernels of the selected instruction set over one workspace.

Work goes up to the rows present in a slot, not up to its capacity.
"""

from __future__ import annotations

import struct

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.spec import Call, PerRow, Program, Ref

HELP = "native kernels on one core per worker"
PRIORITY = 0
PRIORITY_NAME = "BACKEND_PRIORITY_CPU"
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


def arguments(program: Program, call: Call) -> list[tuple[int, int]]:
    """(memory, bits) of each argument of a call."""
    bits = []
    for arg, native_type in zip(call.args, ops.get(call.op).signature(call.types), strict=True):
        if isinstance(arg, Ref):
            place = program.place(arg)
            bits.append((MEMORIES[place.memory], place.offset))
        elif isinstance(arg, PerRow):
            bits.append((MEMORIES["per_row"], arg.times))
        else:
            bits.append((MEMORIES["value"], 0 if arg is None else value_bits(native_type, arg)))
    return bits


def compile(program: Program, addresses: tuple[int, int, int], isa: str = "", device: int = 0) -> _native.Plan:
    """The native plan of a program over (state, base, share)."""
    phases = {
        phase: [(call.op, call.types, arguments(program, call)) for call in calls]
        for phase, calls in program.phases.items()
    }
    output = program.output
    return _native.CpuPlan(
        phases["train"], phases["predict"], program.workspace_bytes, program.constants,
        program.place(output).offset, program.rows, output.shape[1], *addresses, isa,
    )
