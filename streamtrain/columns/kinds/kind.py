"""The base of all column kinds: the settings that every column has, and the methods that every kind implements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from streamtrain.compute.stateful.transform import StatefulSpec

LARGEST = float(np.float32(1e18))  # of a number: the square of a larger one may overflow float32
DEAD_LETTER, SKIP, KEEP = "dead_letter", "skip", "keep"
SKIP_HEAD = "skip_head"  # of one of several labels
_SECOND = np.timedelta64(1, "s")


class Settings(BaseModel):
    """The settings that any column may have. The file of a kind adds its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    kind: str | None = None
    role: str = "feature"
    path: str | None = Field(
        None,
        description=(
            "where its cells stand in a row, such as user.age, items[0].price or ['a.b'].c; braces go in step with the "
            "name's; default: at the key that is its name"
        ),
    )
    missing: bool | int | float | str = Field(
        DEAD_LETTER,
        description=(
            "absent, null or empty: dead_letter, skip (leave the row out), or a value; mean, of a number with "
            "standardize; keep, the default of an input: it is missing to what reads it; skip_head, of one of several "
            "labels: its head learns nothing of the row"
        ),
    )

    @property
    def has_stand_in(self) -> bool:
        """Returns True if `missing` is a value."""
        return not isinstance(self.missing, str) or self.missing not in (DEAD_LETTER, SKIP, KEEP, SKIP_HEAD)


class Block(NamedTuple):
    """A block of a slot, as SlotLayout.make takes it."""

    name: str
    dtype: str
    width: int  # elements of a row; of a ragged block in the mean
    ragged: bool = False  # each row has as many as its cell; a slot is full when there is no more room for them
    least: int = 0  # elements that a slot has room for, however few its rows


CellForm = Literal["value", "list", "pairs"]
S = TypeVar("S", bound=Settings)
Named = Sequence[tuple[str, S]]  # columns of one kind with their names, in written order


class Kind(Generic[S]):
    """One kind. Where a question is not answered, the answer is that of a number that nothing is known of."""

    role: ClassVar[str] = "feature"  # in the job file
    # of a request: its cells are decoded; passed over; passed over, and an array row may be without them
    in_requests: ClassVar[Literal["decoded", "ignored", "optional"]] = "decoded"
    decoded: ClassVar[bool] = True  # False: for the producer alone
    beside: ClassVar[tuple[str, ...] | None] = ("number",)  # kinds that a column of this role may name; None: any
    block: ClassVar[str | None] = None  # of the slot, that its cells go into
    default_missing: ClassVar[str] = DEAD_LETTER
    options: type[S]  # what its columns may say

    def problems(self, column: S) -> Iterator[str]:
        """Yields what is wrong with a column's settings. Each problem starts with the name of its setting."""
        yield from ()

    def missing_problem(self, column: S) -> str | None:
        """Returns what is wrong with a `missing` that is neither "dead_letter" nor "skip", or None."""
        return number_problem(column.missing)

    def loss_problems(self, column: S, loss: str) -> Iterator[str]:
        """Yields what in a column's settings does not fit the loss."""
        yield from ()

    def blocks(self, columns: Named[S], loss: str) -> list[Block]:
        """The blocks of a slot that columns of this kind become; none where there is no column."""
        return []

    def engine_inputs(self, columns: Named[S], loss: str) -> dict[str, Any]:
        """Returns what the engine needs to know about the columns, in the order of their block."""
        return {}

    def stateful(self, name: str, column: S) -> StatefulSpec | None:
        """Returns the transform with state that the model applies to cells of column `name`, or None."""
        return None

    def cells(self, column: S) -> CellForm:
        """Returns what a cell contains: a value, a list of values, or a list of pairs (or a map)."""
        return "value"

    def places(self, name: str, column: S) -> list[str]:
        """The blocks that the column `name` has its elements in, in the order in which the native half takes them."""
        return [] if self.block is None else [self.block]

    def constants(self, columns: Named[S]) -> dict[str, float]:
        """Returns the constants of blocks that no decoded column fills, by block: one float32 for every row."""
        return {}

    def native_options(self, column: S, loss: str) -> dict[str, Any]:
        """Returns the options of the native half, without the name and the stand-in (`missing_value`)."""
        return {}

    def require(self) -> None:
        """Raises UserMistake where a package that decodes its cells is not installed."""

    def stand_in(self, column: S, loss: str) -> str | float:
        """Returns what the native half writes for a missing cell, if `missing` is a value."""
        return float(column.missing)

    def time_unit(self, column: S) -> tuple[int, int] | None:
        """Milliseconds of one, as a fraction, in what its cells count; None of what is no time."""
        return None

    def holds(self, column: S) -> str | None:
        """Returns how transforms read its cells: "number", "text" or "time"; None if they do not."""
        return None

    def read_stand_in(self, column: S, loss: str) -> Any:
        """The same of what stands in for a missing cell; None: it is missing to them."""
        found = self.stand_in(column, loss)
        return int(found) if self.holds(column) == "time" else found

    # cells on their way into records

    def is_text(self, column: S) -> bool:
        """Returns True if a cell of any type stands for its text."""
        return False

    def is_float(self, column: S) -> bool:
        """True if its cells are floats in the slot. A record may hold those as float32, but for columns in
        Schema.exact."""
        return False

    def takes_text(self, column: S) -> bool:
        """Returns True if a text fits the column."""
        return False

    def has_missing_words(self, column: S) -> bool:
        """Returns whether a word such as NA is a missing cell of the column, and not a text."""
        return False

    def takes_bytes(self, column: S) -> bool:
        """Returns True if bytes that are not text fit the column."""
        return False

    def takes_names(self, column: S) -> bool:
        """Returns True if the column takes an enum's name, not its number."""
        return self.is_text(column)

    def hashing(self, name: str, column: S) -> tuple[int, int] | None:
        """Bits and seed of the hash that a record may hold in the place of its texts."""
        return None

    def is_numeric(self, column: S) -> bool:
        """Returns True if a text stands for a number in a file of rows that holds only text."""
        return not self.takes_text(column)

    def plain(self, column: S, value: Any) -> Any:
        """A number or a text for a program's value of another type; None where it does not fit, NaN where missing."""
        return seconds(value) if self.is_numeric(column) else None

    def plain_times(self, column: S, values: Any) -> Any:
        """The same of an array of times or durations."""
        return values / _SECOND if values.dtype.kind == "m" and self.is_numeric(column) else list(values)


def seconds(value: Any) -> float | None:
    """Returns a duration, or a time's distance from midnight, in seconds; None for anything else."""
    if isinstance(value, time):
        value = datetime.combine(date.min, value.replace(tzinfo=None)) - datetime.min
    if isinstance(value, timedelta):
        return value.total_seconds()
    return float(value / _SECOND) if isinstance(value, np.timedelta64) else None


def number_problem(value: Any, most: float = LARGEST) -> str | None:
    """Returns what is wrong with a number that stands in for a missing cell, or None."""
    if isinstance(value, str):
        return f'expected "dead_letter", "skip" or a number, got {value!r}'
    if not abs(value) <= most:
        return f"expected a number from -1e18 to 1e18, whose square fits float32, got {value!r}"
    return None


def as_text(value: bool | int | float | str) -> str:
    """Returns the text of a category's or a class's value, which is no fraction."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value) if isinstance(value, float) else value)
