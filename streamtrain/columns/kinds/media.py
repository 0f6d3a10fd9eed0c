"""The base of kinds whose cells are whole files, as bytes or in base64: images and sound clips.

Each column has a block of its own and a decoder (columns/media.py), which native/decode/media_kind.h calls.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from streamtrain.columns import media
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.kind import Block, Kind, Named, Settings
from streamtrain.compute.spec import DTYPES


class Media(Settings):
    """The settings of image and audio columns."""

    max_decoded_bytes: int = Field(
        64 << 20, ge=1, le=1 << 31, json_schema_extra={"misplaced": "only a feature of kind image or audio has one"},
        description="image, audio: bytes of the largest of them, decoded; default: that of [records]",
    )  # fmt: skip


M = TypeVar("M", bound=Media)
Row = NDArray[Any]


class MediaKind(Kind[M]):
    """Each says its part of its blocks' names, their dtype, and the rest of these questions."""

    part: ClassVar[str]
    dtype: ClassVar[str]

    def width(self, column: M) -> int:
        """Elements of a row."""
        raise NotImplementedError

    def form(self, column: M) -> str:
        """A name for all that decides what a cell becomes."""
        raise NotImplementedError

    def decoder(self, column: M) -> media.DecodePart:
        """Returns the function that decodes some of its cells per call."""
        raise NotImplementedError

    def stand_in_row(self, column: M) -> Row:
        """Returns the row that a missing cell becomes, if `missing` is a value."""
        raise NotImplementedError

    def blocks(self, columns: Named[M], loss: str) -> list[Block]:
        return [Block(block_name(name, self.part), self.dtype, self.width(column)) for name, column in columns]

    def places(self, name: str, column: M) -> list[str]:
        return [block_name(name, self.part)]

    def native_options(self, column: M, loss: str) -> dict[str, Any]:
        dtype = DTYPES[self.dtype]
        options: dict[str, Any] = {
            "form": f"{self.part} {self.form(column)}",
            "bytes": self.width(column) * np.dtype(dtype).itemsize,
            "most_bytes": column.max_decoded_bytes,
            "decoder": partial(media.decode, self.decoder(column), dtype),
        }
        return options | ({"stand_in": list(self.stand_in_row(column).tobytes())} if column.has_stand_in else {})

    def takes_text(self, column: M) -> bool:
        return True

    def takes_bytes(self, column: M) -> bool:
        return True
