"""The rate as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.options import Option

HELP = "the same rate at every step"
OPTIONS: dict[str, Option] = {}


def factor(options: Mapping[str, Any], step: int) -> float:
    return 1.0
