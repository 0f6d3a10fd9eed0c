"""x * by + plus."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import of_number


@of_number
def meaning(use: Use, value: float) -> float:
    return float(value * use.given["by"] + use.given["plus"])
