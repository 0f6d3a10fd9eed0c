"""OWL-QN (Andrew, Gao: Scalable training of L1-regularized log-linear models, 2007): L-BFGS within the orthant that the
pseudo-gradient leads into, for values with l1 |p| on top."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.minimizers._curvature import Curvature
from streamtrain.compute.minimizers._descent import Descent, Vector, dot, no_lower
from streamtrain.compute.minimizers._line_search import MOST_TRIED, halved
from streamtrain.compute.options import Option, Whole

HELP = "L-BFGS with l1: what is not needed becomes 0"
OPTIONS: dict[str, Option] = {"pairs": Whole(least=1, most=100, default=10, help="steps that are remembered")}
TAKES_L1 = True
BY_BATCHES = False


def run(descent: Descent, options: dict[str, Any]) -> None:
    at, curvature = descent.begin(), Curvature(options["pairs"])
    has_l1 = descent.l1 > 0
    while True:
        slope = descent.slope(at)
        direction = -curvature.times(slope)
        direction[(direction * slope >= 0) & has_l1] = 0.0   # no further than the slope leads
        if dot(direction, slope) >= 0:
            curvature.forget()
            direction = -slope
        orthant = np.where(at.x != 0, np.sign(at.x), -np.sign(slope))

        def inside(x: Vector, orthant: Vector = orthant) -> Vector:
            x[(np.sign(x) != orthant) & has_l1] = 0.0
            return x

        length = 1.0 if curvature else 1.0 / max(1.0, dot(slope, slope) ** 0.5)
        found = halved(descent, direction, length, inside)
        if found is not None:
            curvature.note(at, found)
            at = descent.move(found)
        elif curvature:
            curvature.forget()
        else:
            raise no_lower(MOST_TRIED)
