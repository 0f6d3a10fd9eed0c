"""The signature of an op, and the memory that a plan's calls work on, by name. Knows no backend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.errors import UserMistake

Array = NDArray[Any]
Tiles = Literal["", "rows", "sum"]
Role = Literal["size", "value", "given", "known", "out", "part", "changed", "scratch"]
WRITES = ("out", "part", "scratch")   # roles of an array whose content before a call does not matter
DTYPES: dict[str, type] = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u64": np.uint64,
}
TEMPLATE_TYPES = {"float": "f32", "double": "f64"}   # what T stands for in a kernel's instance
INSTANCES = {dtype: types for types, dtype in TEMPLATE_TYPES.items()}


def size_bytes(dtype: str, shape: Sequence[int]) -> int:
    """Returns the bytes of an array of such numbers."""
    return math.prod(map(int, shape)) * np.dtype(DTYPES[dtype]).itemsize


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


class Before(int):
    """The number of elements in the rows before the current ones, `times` for each row.

    As an int it is the number for the first rows.
    """

    times: int

    def __new__(cls, times: int) -> Before:
        self = super().__new__(cls, 0)
        self.times = times
        return self


class Turn(int):
    """Which tile of a batch it is: see native/kernels/chain_sum.h. As an int it is that of a batch which is one."""


@dataclass(frozen=True)
class Arg:
    """One argument of a kernel: a size (i64), a value, an array by its shape in named sizes, or the step block."""

    name: str
    role: Role
    dtype: str = "i64"   # T: the template's type
    shape: tuple[str | int, ...] = ()
    optional: bool = False   # a null pointer is allowed
    of: str = ""   # the size that says of how many arrays it is a table of addresses; they have shapes of their own, of
                   # which `shape` says the first axis where that is the rows

    def native_type(self, types: str) -> str:
        """The C++ type as the native registry writes it."""
        dtype = TEMPLATE_TYPES[types] if self.dtype == "T" else self.dtype
        if self.role in ("size", "value"):
            return dtype
        pointer = "**" if self.of else "*"
        return f"const {dtype}{pointer}" if self.role in ("given", "known") else f"{dtype}{pointer}"


def size(name: str) -> Arg:
    return Arg(name, "size")


def value(name: str, dtype: str = "f32") -> Arg:
    return Arg(name, "value", dtype)


def given(name: str, dtype: str, *shape: str | int, optional: bool = False) -> Arg:
    return Arg(name, "given", dtype, shape, optional)


def out(name: str, dtype: str, *shape: str | int) -> Arg:
    """An array the kernel writes without reading it."""
    return Arg(name, "out", dtype, shape)


def part(name: str, dtype: str, *shape: str | int) -> Arg:
    """An array of which the kernel writes a part without reading it; of it nobody reads more than has been written."""
    return Arg(name, "part", dtype, shape)


def changed(name: str, dtype: str, *shape: str | int, optional: bool = False) -> Arg:
    """An array the kernel reads and writes."""
    return Arg(name, "changed", dtype, shape, optional)


def scratch(name: str, dtype: str, *shape: str | int, optional: bool = False) -> Arg:
    """An array whose content neither matters before nor after."""
    return Arg(name, "scratch", dtype, shape, optional)


def each(arg: Arg, of: str) -> Arg:
    """Declares as many arrays as the size `of` gives. The kernel has a table of their addresses."""
    return replace(arg, of=of)


def step_begun(name: str = "step") -> Arg:
    """The step block, of which the kernel writes what others read: the batch's weight."""
    return Arg(name, "out", "step")


def step_known() -> Arg:
    """The step block, of which the kernel reads what stands there before the step: rate, number, random key."""
    return Arg("step", "known", "step")


def step_read(name: str = "step") -> Arg:
    """The step block, of which the kernel reads the batch's weight too."""
    return Arg(name, "given", "step")


def step_changed() -> Arg:
    """The step block, to whose results the kernel adds."""
    return Arg("step", "changed", "step")


class OnCuda(Protocol):
    """The building blocks of an op's own way on CUDA; arrays are addresses on the device."""

    ones: int   # float32, as many as a full slot has rows

    def product(
        self, c: int, a: int, b: int, rows: int, inner: int, columns: int, a_transposed: bool = False,
        b_transposed: bool = False,
    ) -> None:
        """c [rows, columns] = a [rows, inner] b [inner, columns], float32, row-major; a transposed one is stored the
        other way round."""

    def launch(self, op: str, *arguments: Any) -> None:
        """The kernel of another op."""


@dataclass(frozen=True)
class Op:
    """A kernel's declaration."""

    name: str
    args: tuple[Arg, ...]
    each: tuple[str, ...] = ()   # CUDA launch: independent turns over the product of these sizes (ST_FOR) ...
    rows: tuple[str, ...] = ()   # ... or a block of 32 threads for each of them (ST_ROWS); () of both: one block
    types: tuple[str, ...] = ("",)
    on_cuda: Callable[..., None] | None = None   # its other way there: from OnCuda and the kernel's arguments
    launches: tuple[str, ...] = ()   # ops whose kernels that way launches
    products: tuple[str, ...] = ()   # of a matrix product: the sizes whose product is its multiplications
    tiles: Tiles = ""   # whether it may be run on a tile of a batch's rows after another, see compute/tiling.py

    @property
    def host_only(self) -> bool:
        """Returns whether its kernel is not compiled for CUDA."""
        return self.on_cuda is not None

    def signature(self, types: str) -> list[str]:
        return [arg.native_type(types) for arg in self.args]


@dataclass(frozen=True)
class Ref:
    """Part of a named buffer: `shape` elements of `dtype` from element `start` on, C-contiguous. `own`: it holds what
    one tile makes, which of each thread beside the first lies in memory of its own."""

    space: Literal["state", "base", "share", "gradient", "work", "constant", "slot", "step"]
    name: str
    dtype: str = "f32"
    shape: tuple[int, ...] = ()
    start: int = 0
    own: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Refs:
    """Several arrays that are one argument."""

    refs: tuple[Ref, ...]


Argument = Ref | Refs | int | float | None


def refs_of(args: Iterable[Argument]) -> Iterator[Ref]:
    """The arrays among arguments, in order."""
    for arg in args:
        if isinstance(arg, Refs):
            yield from arg.refs
        elif isinstance(arg, Ref):
            yield arg


@dataclass(frozen=True)
class Call:
    """One op over plan memory. Sizes and values are plan constants; arrays are Refs, or Refs of several; None where
    optional."""

    op: str
    types: str
    args: tuple[Argument, ...]


Run = Callable[[int, int], None]   # with the rows present, and the slot's address
InSlot = Callable[[int], Array]   # of the slot at an address


@dataclass(frozen=True)
class Outside:
    """A call out of a plan, to what is no kernel. `bind` gets the arrays of the Refs, of a full slot, which stay where
    they are as long as the plan; for the step block itself; of a slot's part, an InSlot. `besides`: what it changes
    that it has from another call. Only the CPU's plans take such calls."""

    bind: Callable[..., Run]
    args: tuple[Ref, ...]
    besides: tuple[Ref, ...] = ()


@dataclass(frozen=True)
class Chain:
    """Elementwise calls on as many elements that are one launch: an element goes through all of them."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Tiled:
    """Calls that are made for the first rows of a batch, as many as a tile has, then for the next, and so on."""

    calls: tuple[Call | Chain, ...]


Launch = Call | Outside | Chain
Step = Launch | Tiled
Key = tuple[str, str, int]   # of a Ref: space, name and start


def launches(steps: Iterable[Step]) -> Iterator[Launch]:
    """Yields the launches of a phase in the order in which one tile runs them."""
    for step in steps:
        yield from step.calls if isinstance(step, Tiled) else (step,)


def flat(steps: Iterable[Step]) -> Iterator[Call | Outside]:
    """The calls of a phase, likewise."""
    for launch in launches(steps):
        yield from launch.calls if isinstance(launch, Chain) else (launch,)


@dataclass(frozen=True)
class Place:
    """A Ref resolved to bytes of one of the memories a plan is bound to: work, state, base, share, slot or step."""

    memory: str
    offset: int


@dataclass(frozen=True)
class Program:
    """A model compiled for one slot layout: calls by phase and where their memory lies. Knows no backend."""

    phases: Mapping[str, tuple[Step, ...]]   # those asked for
    offsets: Mapping[tuple[str, str], int]   # (space, buffer) -> bytes within its memory
    workspace_bytes: int
    constants: tuple[tuple[int, bytes], ...]   # workspace offset, content
    output: Ref
    rows: int
    state: _native.StateLayout
    slot_bytes: int
    tile_rows: int = 0                        # of what is Tiled
    local: frozenset[str] = frozenset()       # buffers that hold the rows of one tile
    own: Mapping[Key, int] = field(default_factory=dict)   # bytes within what a thread has alone, see workspace.own
    own_bytes: int = 0

    def kernels(self, phase: str) -> list[Call | Chain]:
        """The phase's launches for a backend that calls nothing but kernels; UserMistake where it has another call."""
        found = list(launches(self.phases[phase]))
        if any(isinstance(launch, Outside) for launch in found):
            raise UserMistake('a network of another library is computed on the CPU; set backend = "cpu"')
        return [launch for launch in found if not isinstance(launch, Outside)]

    def place(self, ref: Ref) -> Place:
        if ref.space == "step":
            return Place("step", 0)
        offset = self.offsets[ref.space, ref.name] + ref.start * np.dtype(DTYPES[ref.dtype]).itemsize
        return Place("work" if ref.space in ("gradient", "work", "constant") else ref.space, offset)
