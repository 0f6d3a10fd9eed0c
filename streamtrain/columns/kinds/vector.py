"""A list of so many numbers to learn from: float32 side by side in the slot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from streamtrain import _native
from streamtrain.columns.kinds.kind import Block, CellForm, Named, Settings
from streamtrain.columns.kinds.standardize import Standardized, StandardizedKind

HELP = "a list of so many numbers, standardised where asked for"


class Sized(Settings):
    """The settings of columns with a size: vectors and images."""

    size: int | list[int] | None = Field(
        None, description="vector: how many numbers it has; image: its height and width, one number where they are one",
        json_schema_extra={"misplaced": "only a feature of kind vector or image has one"},
    )  # fmt: skip


class Options(Standardized, Sized):
    """The settings of a vector column."""


class Vector(StandardizedKind[Options]):
    block = "vectors"
    options = Options

    def problems(self, column: Options) -> Iterator[str]:
        if column.size is None:
            yield "size: expected how many numbers a vector has, got none"
        elif not isinstance(column.size, int) or not 1 <= column.size <= _native.MAX_COLUMNS:
            yield f"size: expected how many numbers a vector has, 1 to {_native.MAX_COLUMNS:,}, got {column.size!r}"
        yield from super().problems(column)

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        return [Block(self.block, "f32", sum(_size(column) for _, column in columns))] if columns else []

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        vectors = [{"size": column.size, "standardize": column.standardized()} for _, column in columns]
        return {"vectors": vectors} if vectors else {}

    def cells(self, column: Options) -> CellForm:
        return "list"

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        return {**super().native_options(column, loss), "size": column.size}

    def is_numeric(self, column: Options) -> bool:
        return False

    def has_missing_words(self, column: Options) -> bool:
        return False


def _size(column: Options) -> int:
    assert isinstance(column.size, int)
    return column.size


KIND = Vector()
