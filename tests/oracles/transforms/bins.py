"""The number of the range that a number lies in."""

from __future__ import annotations

from bisect import bisect_right

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import of_number


@of_number
def meaning(use: Use, value: float) -> float:
    return float(bisect_right(use.given["edges"], value))
