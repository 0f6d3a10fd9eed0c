"""The workers' mean, weighted by what they have trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.builder import Builder
from streamtrain.compute.options import Option

HELP = "the mean of the workers' parameters, by the weight of their rows"
OPTIONS: dict[str, Option] = {}


def build(builder: Builder, options: Mapping[str, Any]) -> None:
    """The mean needs nothing of its own."""
