"""A column that transforms read and the model does not: a number, a text or a time, set by `kind`. In no block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain.columns.kinds import time
from streamtrain.columns.kinds.category import text_problem
from streamtrain.columns.kinds.kind import KEEP, Kind, as_text
from streamtrain.columns.kinds.parsed import (
    is_connect,
    number_problems,
    one_text_problems,
)

HELP = "what transforms read and the model does not"
DEFAULT = "number"
HOLDS = {DEFAULT: "number", "category": "text", "time": "time"}  # by `kind`


class Input(Kind[time.Options]):
    role = "input"
    beside = tuple(HOLDS)
    options = time.Options
    default_missing = KEEP

    def holds(self, column: time.Options) -> str:
        return HOLDS[column.kind or DEFAULT]

    def problems(self, column: time.Options) -> Iterator[str]:
        holds = self.holds(column)
        if holds == "time":
            yield from time.KIND.problems(column)
            return
        for name in ("unit", "zone"):
            if getattr(column, name) is not None:
                yield f"{name}: only a time has one; say kind = \"time\""
        if holds == "text":
            yield from one_text_problems(column)
        if holds == "number":
            yield from number_problems(column)

    def missing_problem(self, column: time.Options) -> str | None:
        if self.holds(column) == "text":
            value = column.missing
            return "expected a text that is not empty, got ''" if value == "" else text_problem(value)
        return time.KIND.missing_problem(column)

    def native_options(self, column: time.Options, loss: str) -> dict[str, Any]:
        base = time.KIND.native_options(column, loss) if self.holds(column) == "time" else {"parse": column.parse or ""}
        return {**base, "holds": self.holds(column)}

    def stand_in(self, column: time.Options, loss: str) -> str | float:
        holds = self.holds(column)
        if holds == "time":
            return time.KIND.stand_in(column, loss)
        return as_text(column.missing) if holds == "text" else float(column.missing)

    def time_unit(self, column: time.Options) -> tuple[int, int] | None:
        return time.KIND.time_unit(column) if self.holds(column) == "time" else None

    def is_text(self, column: time.Options) -> bool:
        return self.holds(column) == "text"

    def takes_text(self, column: time.Options) -> bool:
        return self.holds(column) == "text" or column.parse is not None

    def has_missing_words(self, column: time.Options) -> bool:
        if is_connect(column.parse):
            return False
        return self.holds(column) != "text" or column.parse is not None

    def is_numeric(self, column: time.Options) -> bool:
        return self.holds(column) == "number"

    def plain(self, column: time.Options, value: Any) -> Any:
        return time.KIND.plain(column, value) if self.holds(column) == "time" else super().plain(column, value)

    def plain_times(self, column: time.Options, values: Any) -> Any:
        is_time = self.holds(column) == "time"
        return time.KIND.plain_times(column, values) if is_time else super().plain_times(column, values)


KIND = Input()
