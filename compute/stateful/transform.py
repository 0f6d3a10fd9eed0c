"""What a transform with state is: what it reads in a slot, what it gathers there, what it makes of a row.

A row sees the state of its round's start and never its own; a worker's share of the round is gathered from zero and
folded at the round's end by its block's rule (native/state/rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from streamtrain.compute.builder import Builder
from streamtrain.compute.spec import Ref

Reads = Literal["float", "bucket"]   # of a column of numbers; of one of categories


@dataclass(frozen=True)
class Held:
    """A transform with state as a model has it."""

    name: str
    transform: str
    buckets: int                 # of the category it reads; 0 of a number
    embed: int                   # numbers for each index it makes; 0 where it makes a number
    settings: Mapping[str, Any]  # its own, defaults filled in

    def block(self, part: str = "") -> str:
        """Of the state."""
        return f"{self.transform}.{self.name}{'.' if part else ''}{part}"


@dataclass(frozen=True)
class Batch:
    """What a transform finds in a slot."""

    x: Ref        # f32 or i32 [rows, columns]: its own is `column`
    column: int
    label: Ref    # f32 [rows, 1] where the label is a number, or 0 or 1
    weight: Ref   # f32 [rows, 1]

    @property
    def place(self) -> tuple[int, int]:
        """Columns of the block, and its own."""
        return self.x.shape[1], self.column


class Stateful:
    """One transform with state. Where a question is not answered, it makes a number of a category."""

    reads: ClassVar[Reads] = "bucket"
    reads_label: ClassVar[bool] = False

    def indexes(self, held: Held) -> int:
        """How many indexes there are, each of which is learned as some numbers; 0: it makes a number."""
        return 0

    def problem(self, held: Held) -> str | None:
        """What is wrong with its settings, beginning with one's name."""
        return None

    def build(self, builder: Builder, held: Held, batch: Batch, to: Ref, at: int) -> None:
        """Adds its blocks and its calls. `to`: the input matrix, of which column `at` is its own, or i32 [rows, 1] for
        its indexes (at 0)."""
        raise NotImplementedError
