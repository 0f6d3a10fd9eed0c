"""x ** exponent."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import of_number


@of_number
def meaning(use: Use, value: float) -> float | None:
    exponent = use.given["exponent"]
    if value < 0 and exponent != int(exponent):
        return None
    try:
        return float(value**exponent)
    except (OverflowError, ZeroDivisionError):
        return None
