"""Who decodes cells that are files of their own: the thread that asks, or several that share what is worth it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from streamtrain.columns import media


@pytest.mark.parametrize(("size", "together"), [(media.SMALL - 1, True), (media.SMALL, False)])
def test_small_cells_are_decoded_by_who_asks(size: int, together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "threads", lambda: 2)
    asked: list[tuple[int, int]] = []

    def first_bytes(encoded: Sequence[memoryview], rows: Any) -> bytes:
        asked.append((threading.get_ident(), len(encoded)))
        rows[:, 0] = [cell[0] for cell in encoded]
        return bytes(cell[0] % 2 for cell in encoded)

    cells = [memoryview(bytes([at]) * size) for at in range(60)]
    rows = bytearray(2 * len(cells))
    good = media.decode(first_bytes, np.uint8, cells, memoryview(rows))
    assert list(rows[::2]) == list(range(60)) and list(good) == [0, 1] * 30
    assert (asked == [(threading.get_ident(), 60)]) is together and sum(count for _, count in asked) == 60
    if not together:
        assert all(thread != threading.get_ident() for thread, _ in asked) and len(asked) == 8
