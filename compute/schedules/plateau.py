"""A rate that falls where the loss stops improving (in PyTorch ReduceLROnPlateau). The loss is that of rows before they
are learned; what it remembers is a block of the state (native/state/rules/plateau.h), so that a round's rate is told by
the state it starts from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.builder import Builder
from streamtrain.compute.options import Number, Option, Whole

HELP = "times factor where the loss of the newest rows has not improved for some evaluations"
OPTIONS: dict[str, Option] = {
    "factor": Number(above=0, below=1, default=0.5, help="what is left of the rate after a fall"),
    "patience": Whole(least=1, most=1_000_000, default=5, help="evaluations in a row, none better, until it falls"),
    "rows": Whole(least=1, most=1 << 40, default=_native.WINDOW_ROWS, help="rows of an evaluation, at the least"),
    "threshold": Number(least=0, below=1, default=1e-3, help="share of the best loss by which a better one is less"),
    "least": Number(least=0, most=1, default=0.0, help="what is left of the rate in any case"),
}
STANDING = _native.PLATEAU


def factor(options: Mapping[str, Any], step: int) -> float:
    return 1.0   # of the steps alone


def build(builder: Builder, options: Mapping[str, Any]) -> None:
    """Adds the block that holds where it stands and its settings."""
    begun = dict.fromkeys(STANDING, 0.0) | {"left": 1.0, "every": options["rows"]}
    begun |= {name: options[name] for name in ("patience", "threshold", "factor", "least")}
    start = np.array([begun[name] for name in STANDING], np.float64)
    builder.statistic(_native.SCHEDULE_STANDING, "optimizer", "plateau", len(STANDING), start=start)
