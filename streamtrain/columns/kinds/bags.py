"""Columns whose cells hold any number of entries, each a row of a table: what they may say, and their ragged blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from streamtrain import _native
from streamtrain.columns.kinds.kind import Block, Settings
from streamtrain.compute.model_spec import MAX_ENTRIES

DEFAULT_MOST, OTHER_MOST = {"sparse": 4096, "text": 512}, 64  # by kind
MEAN_ENTRIES, OTHER_MEAN = {"sparse": 128, "text": 128}, 32
DEFAULT_EMBED = 8  # of what is an index, numbers for each
MISPLACED: dict[str, Any] = {"misplaced": "only a column of lists, or a text, has one"}


class Bagged(Settings):
    """The settings of any column whose cells hold several entries."""

    most: int | None = Field(
        None, ge=1, le=MAX_ENTRIES, json_schema_extra=MISPLACED,
        description="of lists: entries of one row; default 64, of a text 512, of a sparse column 4,096",
    )  # fmt: skip
    cut: bool = Field(
        False, description="of lists: keep the first of those above `most`; else such a row is a dead letter",
        json_schema_extra=MISPLACED,
    )  # fmt: skip
    pool: Literal["mean", "sum", "max"] | None = Field(
        None, json_schema_extra=MISPLACED,
        description='of lists: what becomes of the entries\' numbers; default "mean", without `embed` "sum"',
    )  # fmt: skip

    @property
    def most_entries(self) -> int:
        """Returns the largest number of entries in one row."""
        return self.most or DEFAULT_MOST.get(self.kind or "", OTHER_MOST)

    @property
    def mean_entries(self) -> int:
        """Returns the entries per row that a slot has room for. A slot is full sooner if its rows have more."""
        return min(self.most_entries, MEAN_ENTRIES.get(self.kind or "", OTHER_MEAN))


def bag_problems(column: Bagged, is_bag: bool) -> Iterator[str]:
    """Settings of lists in a column that has none."""
    for name in () if is_bag else Bagged.model_fields.keys() - Settings.model_fields.keys():
        if getattr(column, name) != Bagged.model_fields[name].default:
            yield f"{name}: {MISPLACED['misplaced']}; say list = true"


def block_name(name: str, part: str = "list") -> str:
    """Returns the name of a column's ragged block. It has a fixed length: a column name may be too long for a block."""
    return f"{part}:{_native.murmur3(name.encode(), 0, 64):016x}"


def ragged_block(name: str, dtype: str, column: Bagged, part: str = "list") -> Block:
    most = column.most_entries
    return Block(block_name(name, part), dtype, column.mean_entries, True, most)


def bag(name: str, column: Any, embed: int, pool: str, scales: str = "") -> dict[str, Any]:
    """Returns what the engine needs to know about a column. `scales` names the block of factors, one for each entry."""
    block = ragged_block(name, "i32", column)
    sizes = {"buckets": column.buckets, "embed": embed, "width": block.width, "most": block.least}
    return {"name": name, "block": block.name, **sizes, "pool": pool, "scales": scales}
