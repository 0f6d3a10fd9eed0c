"""Nesterov's step along the mean's way: the outer step of DiLoCo (Douillard et al., 2023). The mean of W workers has
gone as far as one of them alone; a velocity makes up for that. Of dense parameters; tables have the mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.builder import Builder
from streamtrain.compute.options import Number, Option

HELP = "the mean, and on along its way with Nesterov's momentum, so that workers learn as much together as one would"
OPTIONS: dict[str, Option] = {
    "rate": Number(above=0, most=10, default=1.0, help="what the way is multiplied by; 1 with momentum 0 is the mean"),
    "momentum": Number(least=0, below=1, default=0.2, help="how much of a round's way the next goes on with"),
}


def build(builder: Builder, options: Mapping[str, Any]) -> None:
    """Adds a velocity for each dense parameter, and the settings, which stand in the state."""
    settings = np.array([options["rate"], options["momentum"]])
    builder.statistic(_native.OUTER_SETTINGS, "optimizer", "sum", len(settings), start=settings)
    for block in builder.parameters:
        builder.statistic(_native.OUTER_VELOCITY + block.name, "optimizer", "outer", *block.shape)
