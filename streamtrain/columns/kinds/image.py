"""A picture, as the bytes of a JPEG or a PNG: uint8 in the slot, which the model sees as numbers from -0.5 to 0.5."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import Field

from streamtrain import _native
from streamtrain.columns import pictures
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.kind import Named
from streamtrain.columns.kinds.media import Media, MediaKind, Row
from streamtrain.columns.kinds.vector import Sized
from streamtrain.columns.media import DecodePart

HELP = "a JPEG or a PNG, as bytes or in base64: each byte of its points a number from -0.5 to 0.5"
MISPLACED: dict[str, Any] = {"misplaced": "only a feature of kind image has one"}
MOST_BYTE = 255


class Options(Sized, Media):
    """The settings of an image column."""

    channels: Literal[1, 3] = Field(
        3, description="image: colours of a point: red, green and blue, or grey alone", json_schema_extra=MISPLACED
    )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        given = self.size if isinstance(self.size, list) else [self.size or 0]
        return given[0], given[-1], self.channels


class Image(MediaKind[Options]):
    options = Options
    part, dtype = "image", "u8"

    def problems(self, column: Options) -> Iterator[str]:
        height, width, channels = column.shape
        sides = column.size if isinstance(column.size, list) else [column.size]
        if len(sides) not in (1, 2) or min(height, width) < 1:
            yield f"size: expected the height and the width that pictures are brought to, got {column.size!r}"
        elif height * width * channels > _native.MAX_COLUMNS:
            yield f"size: expected at most {_native.MAX_COLUMNS:,} numbers, got {height * width * channels:,}"

    def missing_problem(self, column: Options) -> str | None:
        value = column.missing
        if type(value) is int and 0 <= value <= MOST_BYTE:
            return None
        return f'expected "dead_letter", "skip" or a byte for all its points, 0 to {MOST_BYTE}, got {value!r}'

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        pixels = [{"block": block_name(name, self.part), "size": self.width(column)} for name, column in columns]
        return {"pixels": pixels} if pixels else {}

    def width(self, column: Options) -> int:
        height, width, channels = column.shape
        return height * width * channels

    def form(self, column: Options) -> str:
        return "{} x {} x {}".format(*column.shape)

    def decoder(self, column: Options) -> DecodePart:
        return partial(pictures.decode, column.shape)

    def require(self) -> None:
        pictures.require()

    def stand_in_row(self, column: Options) -> Row:
        return np.full(self.width(column), int(column.missing), np.uint8)


KIND = Image()
