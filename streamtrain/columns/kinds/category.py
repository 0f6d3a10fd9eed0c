"""Text, an integer or a boolean, hashed into buckets: an int32 in the slot; of a list any number of them, as a bag.

The hash is native/decode/murmur3.h's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from streamtrain import _native
from streamtrain.columns.kinds.bags import DEFAULT_EMBED, Bagged, bag, bag_problems, block_name, ragged_block
from streamtrain.columns.kinds.kind import Block, CellForm, Kind, Named, as_text
from streamtrain.columns.kinds.parsed import ONE_TEXT, Parsed, one_text_problems
from streamtrain.compute import initializers
from streamtrain.compute.input import MEAN
from streamtrain.compute.stateful.transform import StatefulSpec
from streamtrain.compute.stateful_inputs import BLOCKS, VOCABULARY, settings_problems, stateful_spec

HELP = "text, integer or boolean, hashed into buckets, each of which is learned as some numbers"
MOST_BUCKETS = 2**31 - 1  # a bucket is an int32 in the slot
MISPLACED = {"misplaced": "only a category, a text or a sparse column has one"}


class Hashed(Bagged):
    """The settings of columns whose cells become buckets."""

    buckets: int | None = Field(
        None,
        ge=1,
        le=MOST_BUCKETS,
        description="category, text: how many buckets the hash has; sparse: how many indexes there are",
        json_schema_extra=MISPLACED,  # type: ignore[arg-type]
    )
    hash_bits: Literal[32, 64] = Field(
        32,
        description="category, text: bits of the text's hash, of which the bucket is the remainder",
        json_schema_extra=MISPLACED,  # type: ignore[arg-type]
    )
    embed: int | None = Field(
        None,
        ge=1,
        le=_native.MAX_COLUMNS,
        description=f"numbers per bucket; default {DEFAULT_EMBED}, of a text and a sparse column one for each output",
        json_schema_extra=MISPLACED,  # type: ignore[arg-type]
    )


class Given(BaseModel):
    """A table of settings, which another file declares."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Options(Hashed, Parsed):
    """The settings of a category column."""

    vocabulary: Given | None = Field(
        None,
        description="category: ids for the values seen often, in place of buckets: capacity, admit, evict",
        json_schema_extra={"misplaced": "only a feature of kind category has one"},
    )

    init: str = Field(
        initializers.AUTO,
        description='category: what the numbers of its buckets start from; "auto": within 0.05',
        json_schema_extra={"misplaced": "only a feature of kind category has one"},
    )

    list: bool = Field(
        False,
        description="category: a cell is a list of values",
        json_schema_extra={"misplaced": "only a feature of kind category has one"},
    )


class Category(Kind[Options]):
    block = "categories"
    options = Options

    def problems(self, column: Options) -> Any:
        if column.vocabulary is not None:
            yield from _vocabulary_problems(column)
        elif column.buckets is None:
            yield "buckets: expected a number of buckets for a category, or a vocabulary, got none"
        if column.init not in initializers.words():
            yield f"init: expected one of {', '.join(initializers.words())}, got {column.init!r}"
        yield from bag_problems(column, column.list)
        yield from one_text_problems(column)

    def missing_problem(self, column: Options) -> str | None:
        return text_problem(column.missing)

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        alone = [Block(self.block, "i32", len(_alone(columns)))] if _alone(columns) else []
        whole = [Block(*BLOCKS["hash"], 1) for _, column in columns if column.vocabulary is not None]
        return alone + whole + [ragged_block(name, "i32", column) for name, column in columns if column.list]

    def stateful(self, name: str, column: Options) -> StatefulSpec | None:
        if column.vocabulary is None:
            return None
        settings = {VOCABULARY: name, **column.vocabulary.model_dump()}
        return stateful_spec(name, VOCABULARY, 0, column.embed or DEFAULT_EMBED, settings, column.init)

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        tables = [
            {"name": name, "buckets": column.buckets, "embed": column.embed or DEFAULT_EMBED,
             **initializers.to_dict(column.init)}
            for name, column in _alone(columns)
        ]
        bags = [
            {
                **bag(name, column, column.embed or DEFAULT_EMBED, column.pool or MEAN),
                **initializers.to_dict(column.init),
            }
            for name, column in columns
            if column.list
        ]
        return {"categories": tables, "bags": bags}

    def cells(self, column: Options) -> CellForm:
        return "list" if column.list else "value"

    def places(self, name: str, column: Options) -> list[str]:
        if column.vocabulary is not None:
            return [BLOCKS["hash"][0]]
        return [block_name(name)] if column.list else [self.block]

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        parse = {} if column.parse is None else {"parse": column.parse}
        if column.vocabulary is not None:
            return {"whole": True, "hash_bits": column.hash_bits, **parse}
        lists = {"list": True, "most": column.most_entries, "cut": column.cut} if column.list else {}
        return {"buckets": column.buckets, "hash_bits": column.hash_bits, **lists, **parse}

    def stand_in(self, column: Options, loss: str) -> str:
        return as_text(column.missing)

    def holds(self, column: Options) -> str | None:
        return None if column.list else "text"

    def is_text(self, column: Options) -> bool:
        return True

    def takes_text(self, column: Options) -> bool:
        return True

    def has_missing_words(self, column: Options) -> bool:
        return column.parse in ONE_TEXT

    def hashing(self, name: str, column: Options) -> tuple[int, int] | None:
        """None where texts are parsed: those that come as hashes cannot be."""
        return None if column.parse is not None else (column.hash_bits, hash_seed(name))


def _alone(columns: Named[Options]) -> Named[Options]:
    """Returns the columns whose cell is one bucket: no list and no vocabulary."""
    return [(name, column) for name, column in columns if not column.list and column.vocabulary is None]


def text_problem(missing: bool | int | float | str) -> str | None:
    """Returns what is wrong with a text or an integer that stands in for a missing cell, or None."""
    if isinstance(missing, float) and not missing.is_integer():
        return f'expected "dead_letter", "skip", a text or an integer for a category, got {missing!r}'
    return None


def _vocabulary_problems(column: Options) -> Iterator[str]:
    given = column.vocabulary.model_dump() if column.vocabulary is not None else {}
    if VOCABULARY in given:
        yield f"vocabulary.{VOCABULARY}: expected none, it is of the column's own values, got {given[VOCABULARY]!r}"
        return
    for problem in settings_problems(VOCABULARY, {VOCABULARY: "its own", **given}):
        yield f"vocabulary.{problem.name}: {problem}"
    for name in ("buckets", "list"):
        if getattr(column, name):
            yield f"{name}: expected none beside a vocabulary, got {getattr(column, name)!r}"


def hash_seed(name: str) -> int:
    """Returns the seed for hashing the texts of column `name`. Each column has its own, so collisions differ."""
    return _native.murmur3(name.encode(), 0)


KIND = Category()
