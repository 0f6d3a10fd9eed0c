"""A number, or the nearer of two bounds."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import of_number


@of_number
def meaning(use: Use, value: float) -> float:
    return float(min(max(value, use.given["low"]), use.given["high"]))
