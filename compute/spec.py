"""How an op states its signature, and how a plan names the memory its calls work on. Knows no backend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native

Array = NDArray[Any]
Role = Literal["size", "value", "given", "out", "changed", "scratch", "step"]
DTYPES: dict[str, type] = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u64": np.uint64,
}
TEMPLATE_TYPES = {"float": "f32", "double": "f64"}   # what T stands for in a kernel's instance


class PerRow(int):
    """A size that goes with the rows of a batch, `times` for each. As an int it is that of a full slot; a backend may
    put that of the rows present in its place (the CPU's does)."""

    rows: int
    times: int

    def __new__(cls, rows: int, times: int = 1) -> PerRow:
        self = super().__new__(cls, rows * times)
        self.rows, self.times = rows, times
        return self

    def __mul__(self, times: int, /) -> PerRow:
        assert not isinstance(times, PerRow)
        return PerRow(self.rows, self.times * times)

    __rmul__ = __mul__


@dataclass(frozen=True)
class Arg:
    """One argument of a kernel: a size (i64), a value, an array by its shape in named sizes, or the step block."""

    name: str
    role: Role
    dtype: str = "i64"   # T: the template's type
    shape: tuple[str | int, ...] = ()
    optional: bool = False   # a null pointer is allowed

    def native_type(self, types: str) -> str:
        """The C++ type as the native registry writes it."""
        dtype = TEMPLATE_TYPES[types] if self.dtype == "T" else self.dtype
        if self.role in ("size", "value"):
            return dtype
        return f"const {dtype}*" if self.role == "given" else f"{dtype}*"


def size(name: str) -> Arg:
    return Arg(name, "size")


def value(name: str, dtype: str = "f32") -> Arg:
    return Arg(name, "value", dtype)


def given(name: str, dtype: str, *shape: str | int, optional: bool = False) -> Arg:
    return Arg(name, "given", dtype, shape, optional)


def out(name: str, dtype: str, *shape: str | int) -> Arg:
    """An array the kernel writes without reading it."""
    return Arg(name, "out", dtype, shape)


def changed(name: str, dtype: str, *shape: str | int) -> Arg:
    """An array the kernel reads and writes."""
    return Arg(name, "changed", dtype, shape)


def scratch(name: str, dtype: str, *shape: str | int, optional: bool = False) -> Arg:
    """An array whose content neither matters before nor after."""
    return Arg(name, "scratch", dtype, shape, optional)


def step_read() -> Arg:
    return Arg("step", "given", "step")


def step_changed() -> Arg:
    return Arg("step", "changed", "step")


@dataclass(frozen=True)
class Op:
    """A kernel's declaration, its meaning in NumPy, and arguments to try it with.

    `reference` takes the kernel's arguments in order, arrays as NumPy views it writes into.
    `example(rng, n)` gives argument values by name for about n elements; outputs may be left out.
    """

    name: str
    args: tuple[Arg, ...]
    reference: Callable[..., None]
    example: Callable[[np.random.Generator, int], dict[str, Any]]
    each: tuple[str, ...] = ()   # CUDA launch: independent turns over the product of these sizes (ST_FOR) ...
    rows: tuple[str, ...] = ()   # ... or a block of 32 threads for each of them (ST_ROWS); () of both: one block
    types: tuple[str, ...] = ("",)
    host_only: bool = False      # CUDA has another way (cuBLAS)
    tolerance: float = 2e-6      # of a backend against the reference, relative to the largest magnitude; double: 1e-12

    def signature(self, types: str) -> list[str]:
        return [arg.native_type(types) for arg in self.args]


@dataclass(frozen=True)
class Ref:
    """Part of a named buffer: `shape` elements of `dtype` from element `start` on, C-contiguous."""

    space: Literal["state", "base", "share", "gradient", "work", "constant", "slot", "step"]
    name: str
    dtype: str = "f32"
    shape: tuple[int, ...] = ()
    start: int = 0

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Call:
    """One op over plan memory. Sizes and values are plan constants; arrays are Refs, None where optional."""

    op: str
    types: str
    args: tuple[Ref | int | float | None, ...]


@dataclass(frozen=True)
class Place:
    """A Ref resolved to bytes of one of the memories a plan is bound to: work, state, base, share, slot or step."""

    memory: str
    offset: int


@dataclass(frozen=True)
class Program:
    """A model compiled for one slot layout: calls by phase and where their memory lies. Knows no backend."""

    phases: Mapping[str, tuple[Call, ...]]   # train, predict
    offsets: Mapping[tuple[str, str], int]   # (space, buffer) -> bytes within its memory
    workspace_bytes: int
    constants: tuple[tuple[int, bytes], ...]   # workspace offset, content
    output: Ref
    rows: int
    state: _native.StateLayout
    slot_bytes: int

    def place(self, ref: Ref) -> Place:
        if ref.space == "step":
            return Place("step", 0)
        offset = self.offsets[ref.space, ref.name] + ref.start * np.dtype(DTYPES[ref.dtype]).itemsize
        return Place("work" if ref.space in ("gradient", "work", "constant") else ref.space, offset)
