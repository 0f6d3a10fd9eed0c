"""Cells that are whole files, as bytes or in base64: what images and sound clips share."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from numpy.typing import NDArray

from streamtrain.columns.column import Column
from tests.oracles.kinds import Oracle, Wrong


class MediaOracle(Oracle):
    def opened(self, column: Column, encoded: bytes) -> NDArray[Any] | None:
        """Returns the row that a cell becomes. None if the cell does not fit."""
        raise NotImplementedError

    def meaning(self, name: str, column: Column, loss: str, cell: Any) -> Any:
        if isinstance(cell, str):
            try:
                cell = base64.b64decode(cell if len(cell) % 4 == 0 else "=", validate=True)
            except (binascii.Error, ValueError):
                raise Wrong from None
        row = self.opened(column, cell) if isinstance(cell, bytes) else None
        if row is None:
            raise Wrong
        return [row.ravel().tolist()]

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        return [column.entry.stand_in_row(column).tolist()]
