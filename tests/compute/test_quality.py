"""The window of the progressive quality."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.quality import WINDOW_ROWS, Quality


def state(rows: int) -> dict[str, Any]:
    """A regression's scores after so many rows."""
    return {"score.loss": np.array([3.0 * rows, 3.0 * rows, rows, 0.0]), "score.errors": np.full(5, float(rows)),
            "score.rows": np.array([rows])}   # each of weight 3: a window counts rows


def test_the_first_window_grows_and_a_full_one_stays_until_the_next_is_full() -> None:
    quality = Quality()
    quality.begin(state(0))
    assert quality.look(state(2_000))["window"]["rows"] == 2_000
    assert quality.look(state(6_000))["window"]["rows"] == 6_000
    full = quality.look(state(WINDOW_ROWS + 500))
    assert full["window"]["rows"] == WINDOW_ROWS + 500
    assert quality.look(state(WINDOW_ROWS + 900))["window"] == full["window"]
    later = quality.look(state(2 * WINDOW_ROWS + 900))
    assert later["window"]["rows"] == WINDOW_ROWS + 400 and later["total"]["rows"] == 2 * WINDOW_ROWS + 900
