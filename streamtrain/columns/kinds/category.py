"""Text, an integer or a boolean, hashed into buckets: an int32 in the slot. The hash is native/decode/murmur3.h's."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from streamtrain import _native
from streamtrain.columns.kinds.cell import Cell, as_text
from streamtrain.columns.kinds.kind import Block, Kind, Named, Settings, TextHash, Wrong

HELP = "text, integer or boolean, hashed into buckets, each of which is learned as some numbers"
MOST_BUCKETS = 2**31 - 1  # a bucket is an int32 in the slot
DEFAULT_EMBED = 8
MISPLACED = {"misplaced": "only a feature of kind category has one"}


class Options(Settings):
    """Of a category."""

    buckets: int | None = Field(
        None,
        ge=1,
        le=MOST_BUCKETS,
        description="category: how many buckets the hash has",
        json_schema_extra=MISPLACED,  # type: ignore[arg-type]
    )
    hash_bits: Literal[32, 64] = Field(
        32,
        description="category: bits of the text's hash, of which the bucket is the remainder",
        json_schema_extra=MISPLACED,  # type: ignore[arg-type]
    )
    embed: int | None = Field(
        None,
        ge=1,
        le=_native.MAX_COLUMNS,
        description=f"category: numbers per bucket; default {DEFAULT_EMBED}",
        json_schema_extra=MISPLACED,  # type: ignore[arg-type]
    )


class Category(Kind[Options]):
    block = "categories"
    options = Options

    def problems(self, column: Options) -> Any:
        if column.buckets is None:
            yield "buckets: expected a number of buckets for a category, got none"

    def missing_problem(self, column: Options) -> str | None:
        value = column.missing
        if isinstance(value, float) and not value.is_integer():
            return f'expected "dead_letter", "skip", a text or an integer for a category, got {value!r}'
        return None

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        return [Block(self.block, "i32", len(columns))] if columns else []

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        tables = [
            {"name": name, "buckets": column.buckets, "embed": column.embed or DEFAULT_EMBED}
            for name, column in columns
        ]
        return {"categories": tables}

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        return {"buckets": column.buckets, "hash_bits": column.hash_bits}

    def stand_in(self, column: Options, loss: str) -> str:
        return as_text(int(column.missing) if isinstance(column.missing, float) else column.missing)

    def meaning(self, name: str, column: Options, loss: str, cell: Cell) -> Any:
        assert column.buckets is not None
        return _native.murmur3(as_text(cell).encode(), hash_seed(name), column.hash_bits) % column.buckets

    def meaning_of_hash(self, name: str, column: Options, hashed: TextHash) -> Any:
        assert column.buckets is not None
        if (hashed.bits, hashed.seed) != self.hashing(name, column):
            raise Wrong
        return hashed.value % column.buckets

    def holds(self, column: Options) -> str:
        return "text"

    def read(self, name: str, column: Options, loss: str, cell: Cell) -> str:
        return as_text(cell)

    def is_text(self, column: Options) -> bool:
        return True

    def takes_text(self, column: Options) -> bool:
        return True

    def hashing(self, name: str, column: Options) -> tuple[int, int]:
        return column.hash_bits, hash_seed(name)


def hash_seed(name: str) -> int:
    """Of the texts of the column `name`, so that no two columns have the same collisions."""
    return _native.murmur3(name.encode(), 0)


KIND = Category()
