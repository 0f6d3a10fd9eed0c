"""The interface of a transform with state: what it reads in a slot, what it gathers there, what it makes of a row.

A row sees the state of its round's start and never its own; a worker's share of the round is gathered from zero and
folded at the round's end by its block's rule (native/state/rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from streamtrain.compute.builder import STATISTICS, Builder
from streamtrain.compute.initializers import AUTO
from streamtrain.compute.spec import Ref

Reads = Literal["float", "bucket", "time", "hash"]   # of a number; of a category; when a row happened, in ms since
# 1970; of a category its hash
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class StatefulSpec:
    """A transform with state as a model has it."""

    name: str
    transform: str
    buckets: int                 # of the category it reads; 0 of a number
    embed: int                   # numbers for each index it makes; 0 where it makes a number
    settings: Mapping[str, Any]  # its own, defaults filled in
    init: str = AUTO             # of the numbers: one of compute/initializers.py

    def block(self, part: str = "") -> str:
        """Returns the name of its block of the state."""
        return f"{self.transform}.{self.name}{'.' if part else ''}{part}"


@dataclass(frozen=True)
class Batch:
    """The inputs that a transform finds in a slot."""

    given: Mapping[Reads, tuple[Ref, int]]   # [rows, columns], f64, i32 or i64: its own is that column
    label: Ref    # f32 [rows, 1] where the label is a number, or 0 or 1
    weight: Ref   # f32 [rows, 1]

    def of(self, reads: Reads) -> tuple[Ref, int]:
        return self.given[reads]

    @property
    def x(self) -> Ref:
        """Returns the block of what it reads first."""
        return next(iter(self.given.values()))[0]

    @property
    def place(self) -> tuple[int, int]:
        """Columns of that block, and its own."""
        x, column = next(iter(self.given.values()))
        return x.shape[1], column

    def add_decayed(self, builder: Builder, spec: StatefulSpec, cells: int, width: int, share: Ref) -> None:
        """The rows of a batch into a share of decayed_table()."""
        kinds: tuple[Reads, ...] = ("bucket", "float", "time")
        refs = [self.given[kind][0] if kind in self.given else None for kind in kinds]
        (b, x, t) = ((1, 0) if ref is None else (ref.shape[1], self.given[kind][1])
                     for kind, ref in zip(kinds, refs, strict=True))   # fmt: skip
        with builder.during(*STATISTICS):
            builder.call("decayed_add", builder.rows, *b, cells, width, *x, *t, *refs, self.weight,
                         1000 * spec.settings["half_life"], share)   # fmt: skip


def decayed_table(builder: Builder, spec: StatefulSpec, cells: int, width: int) -> tuple[Ref, Ref]:
    """Base and share of sums that forget: native/kernels/decayed.h."""
    return builder.statistic(spec.block(), "statistics", "decayed", cells, width)


class Stateful:
    """One transform with state. Where a question is not answered, it makes a number of a category."""

    reads: ClassVar[Reads] = "bucket"   # first
    reads_label: ClassVar[bool] = False

    def feeds(self, settings: Settings) -> tuple[tuple[Reads, int], ...]:
        """Returns what it reads in a slot, each once, and from which of its columns. -1 is the job's event time."""
        return ((self.reads, 0),)

    def indexes(self, spec: StatefulSpec) -> int:
        """Returns the number of indexes, each of which is learned as some numbers. 0: the transform makes a number."""
        return 0

    def rows_of(self, spec: StatefulSpec) -> str:
        """The block of its state that says whose each index is; "": each is of one and the same."""
        return ""

    def problem(self, spec: StatefulSpec) -> str | None:
        """Returns what is wrong with its settings, beginning with the name of one."""
        return None

    def build(self, builder: Builder, spec: StatefulSpec, batch: Batch, to: Ref, at: int) -> None:
        """Adds its blocks and its calls. `to`: the input matrix, of which column `at` is its own, or i32 [rows, 1] for
        its indexes (at 0)."""
        raise NotImplementedError
