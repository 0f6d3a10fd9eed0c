"""Pairs of an index, or a name hashed into one, and a number: a weighted bag, or a linear part of the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from streamtrain.columns.kinds.bags import bag, block_name, ragged_block
from streamtrain.columns.kinds.category import Hashed
from streamtrain.columns.kinds.kind import Block, CellForm, Kind, Named
from streamtrain.compute.input import SUM

HELP = "pairs of an index or a name and a number, or a map; without `embed` each index has a weight for each output"
SCALE = "scale"  # of a block's name
MOST_BITS = 30  # of an index that Vowpal Wabbit's hash gives
_ODD = frozenset(" \t\r\n:|")  # in no name of a namespace


class Options(Hashed):
    """The settings of a sparse column."""

    namespaces: list[str] | None = Field(
        None,
        description=(
            'sparse, of format = "vw": the namespaces whose features it takes, "" for those without a name; default: '
            "all that no other column takes"
        ),
        json_schema_extra={"misplaced": "only a column of kind sparse has them"},
    )
    vw_bits: int | None = Field(
        None,
        ge=1,
        le=MOST_BITS,
        description=(
            "sparse: names are hashed as Vowpal Wabbit does, in the first of namespaces, into indexes of so many bits; "
            'default: with format = "vw" as many as the records have, else names are hashed as texts are'
        ),
        json_schema_extra={"misplaced": "only a column of kind sparse has them"},
    )


class Sparse(Kind[Options]):
    options = Options

    def problems(self, column: Options) -> Iterator[str]:
        if column.buckets is None:
            yield "buckets: expected how many indexes there are, got none"
        given = column.namespaces
        if given is not None and (not given or len(set(given)) < len(given) or any(_ODD & set(name) for name in given)):
            yield f"namespaces: expected names that differ, without spaces, colons and bars, got {given!r}"
        least = 0 if column.vw_bits is None else 1 << column.vw_bits
        if column.buckets is not None and column.buckets < least:
            yield f"buckets: expected {least:,} or more for vw_bits = {column.vw_bits}, got {column.buckets:,}"
        if column.pool is not None and column.embed is None:
            yield "pool: expected with embed alone: without it the numbers are added to the outputs"

    def missing_problem(self, column: Options) -> str | None:
        value = column.missing
        return None if value in (0, "") else f'expected "dead_letter", "skip" or 0 for no pairs, got {value!r}'

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        return [
            ragged_block(name, dtype, column, part)
            for name, column in columns
            for dtype, part in (("i32", "list"), ("f32", SCALE))
        ]

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        return {
            "bags": [
                bag(name, column, column.embed or 0, column.pool or SUM, block_name(name, SCALE))
                for name, column in columns
            ]
        }

    def cells(self, column: Options) -> CellForm:
        return "pairs"

    def places(self, name: str, column: Options) -> list[str]:
        return [block_name(name), block_name(name, SCALE)]

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        hashing = {"buckets": column.buckets, "hash_bits": column.hash_bits}
        names = {"namespaces": column.namespaces, "vw_bits": column.vw_bits}
        given = {name: value for name, value in names.items() if value is not None}
        return {**hashing, "most": column.most_entries, "cut": column.cut, **given}

    def stand_in(self, column: Options, loss: str) -> float:
        return 0.0

    def takes_text(self, column: Options) -> bool:
        return True

    def is_numeric(self, column: Options) -> bool:
        return False


KIND = Sparse()
