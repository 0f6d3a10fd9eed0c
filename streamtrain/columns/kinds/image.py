"""A picture, as the bytes of a JPEG or a PNG: uint8 in the slot, which the model sees as numbers from -0.5 to 0.5."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from streamtrain import _native
from streamtrain.columns import picture_meaning, pictures
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.cell import Cell
from streamtrain.columns.kinds.kind import Block, Kind, Named, Wrong
from streamtrain.columns.kinds.sized import Sized

HELP = "a JPEG or a PNG, as bytes or in base64: each byte of its points a number from -0.5 to 0.5"
MISPLACED: dict[str, Any] = {"misplaced": "only a feature of kind image has one"}
BLOCK = "image"  # of its block's name
MOST_BYTE = 255


class Options(Sized):
    """Of a picture."""

    channels: Literal[1, 3] = Field(
        3, description="image: colours of a point: red, green and blue, or grey alone", json_schema_extra=MISPLACED
    )
    max_decoded_bytes: int = Field(
        64 << 20, ge=1, le=1 << 31, json_schema_extra=MISPLACED,
        description="image: bytes of the largest picture, decoded; default: that of [records]",
    )  # fmt: skip

    @property
    def form(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        given = self.size if isinstance(self.size, list) else [self.size or 0]
        return given[0], given[-1], self.channels


class Image(Kind[Options]):
    options = Options

    def problems(self, column: Options) -> Iterator[str]:
        height, width, channels = column.form
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

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        return [Block(block_name(name, BLOCK), "u8", _bytes(column)) for name, column in columns]

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        told = [{"block": block_name(name, BLOCK), "size": _bytes(column)} for name, column in columns]
        return {"pixels": told} if told else {}

    def places(self, name: str, column: Options) -> list[str]:
        return [block_name(name, BLOCK)]

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        height, width, channels = column.form
        form = {"height": height, "width": width, "channels": channels}
        return {**form, "most_bytes": column.max_decoded_bytes, "decoder": pictures.decode}

    def require(self) -> None:
        pictures.require()

    def meaning(self, name: str, column: Options, loss: str, cell: Cell | bytes) -> Any:
        if isinstance(cell, str):
            try:
                cell = base64.b64decode(cell if len(cell) % 4 == 0 else "=", validate=True)
            except (binascii.Error, ValueError):
                raise Wrong from None
        if not isinstance(cell, bytes):
            raise Wrong
        points = picture_meaning.points(cell, column.form, column.max_decoded_bytes)
        if points is None:
            raise Wrong
        return [points.ravel().tolist()]

    def meaning_of_missing(self, name: str, column: Options, loss: str) -> Any:
        return [np.full(_bytes(column), int(column.missing), np.uint8).tolist()]

    def takes_text(self, column: Options) -> bool:
        return True

    def takes_bytes(self, column: Options) -> bool:
        return True


def _bytes(column: Options) -> int:
    height, width, channels = column.form
    return height * width * channels


KIND = Image()
