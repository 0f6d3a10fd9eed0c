"""Text, an integer or a boolean, hashed into buckets: an int32 in the slot; of a list any number of them, as a bag.

The hash is native/decode/murmur3.h's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from streamtrain import _native
from streamtrain.columns.kinds.bags import DEFAULT_EMBED, Bagged, bag, bag_problems, block_name, kept, ragged_block
from streamtrain.columns.kinds.cell import Cell, as_text
from streamtrain.columns.kinds.kind import Block, CellForm, Kind, Named, TextHash, Wrong
from streamtrain.columns.kinds.parsed import ONE_TEXT, Parsed, one_text, one_text_problems
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
        value = column.missing
        if isinstance(value, float) and not value.is_integer():
            return f'expected "dead_letter", "skip", a text or an integer for a category, got {value!r}'
        return None

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
        return as_text(int(column.missing) if isinstance(column.missing, float) else column.missing)

    def meaning(self, name: str, column: Options, loss: str, cell: Cell) -> Any:
        return self._of_text(name, column, as_text(one_text(column, cell)))

    def _of_text(self, name: str, column: Options, text: str) -> int:
        return _put(column, _native.murmur3(text.encode(), hash_seed(name), column.hash_bits))

    def meaning_of_list(self, name: str, column: Options, loss: str, cell: list[Any]) -> list[Any]:
        return [kept(column, [self._entry(name, column, loss, each) for each in cell if each is not None])]

    def _entry(self, name: str, column: Options, loss: str, each: Any) -> Any:
        hashed = isinstance(each, TextHash)
        return self._of_hash(name, column, each) if hashed else self.meaning(name, column, loss, each)

    def meaning_of_missing(self, name: str, column: Options, loss: str) -> Any:
        """Returns the stand-in's bucket or hash. For a list, it is the only entry; an empty text gives no entry."""
        alone = self.stand_in(column, loss)
        found = self._of_text(name, column, alone)
        return found if not column.list else [[found] if alone else []]

    def meaning_of_hash(self, name: str, column: Options, hashed: TextHash) -> Any:
        if column.list:
            raise Wrong
        return self._of_hash(name, column, hashed)

    def _of_hash(self, name: str, column: Options, hashed: TextHash) -> Any:
        if (hashed.bits, hashed.seed) != (column.hash_bits, hash_seed(name)):
            raise Wrong
        return _put(column, hashed.value)

    def holds(self, column: Options) -> str | None:
        return None if column.list else "text"

    def read(self, name: str, column: Options, loss: str, cell: Cell) -> str:
        return as_text(one_text(column, cell))

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


def _put(column: Options, found: int) -> int:
    """Returns what the slot stores for a hash: its bucket, or with a vocabulary the hash itself as an int64."""
    if column.vocabulary is not None:
        return found - (1 << 64) if found >> 63 else found
    assert column.buckets is not None
    return found % column.buckets


def hash_seed(name: str) -> int:
    """Returns the seed for hashing the texts of column `name`. Each column has its own, so collisions differ."""
    return _native.murmur3(name.encode(), 0)


KIND = Category()
