"""The window of the progressive quality."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.quality import WINDOW_ROWS, Quality


def state(rows: int) -> dict[str, Any]:
    """A regression's scores after so many rows."""
    return {"score.loss": np.array([3.0 * rows, 3.0 * rows, rows, 0.0]), "score.errors": np.full(5, float(rows)),
            "score.rows": np.array([rows]),   # each of weight 3: a window counts rows
            "optimizer.steps": np.array([rows // 8])}


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


def test_updates_and_the_columns_most_clipped_are_told() -> None:
    moments = np.zeros((3, len(MOMENTS)))
    moments[:, MOMENTS.index("clipped")] = [2, 0, 7]
    quality = Quality(["a", "b", "c"])
    quality.begin(state(0))
    seen = quality.look({**state(800), "standardize.numbers": moments})
    assert seen["updates"] == 100 and seen["clipped"] == {"c": 7, "a": 2} and list(seen["clipped"]) == ["c", "a"]
