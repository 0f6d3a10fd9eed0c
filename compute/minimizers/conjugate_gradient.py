"""Nonlinear conjugate gradient by Polak and Ribiere (1969), begun anew where its factor is below 0 (Nocedal, Wright:
Numerical optimization, 2006, 5.2)."""

from __future__ import annotations

from typing import Any

from streamtrain.compute.minimizers._descent import Descent, dot, no_lower
from streamtrain.compute.minimizers._line_search import MOST_TRIED, wolfe
from streamtrain.compute.options import Number, Option

HELP = "along directions that do not undo each other (Polak-Ribiere), by line search"
OPTIONS: dict[str, Option] = {
    "flatness": Number(above=0, below=0.5, default=0.1, help="of the slope, what may be left of it behind a step (c2)"),
}
TAKES_L1 = False
BY_BATCHES = False


def run(descent: Descent, options: dict[str, Any]) -> None:
    at = descent.begin()
    direction, steepest = -at.gradient, True
    length = 1.0 / max(1.0, dot(at.gradient, at.gradient) ** 0.5)
    while True:
        slope = dot(at.gradient, direction)
        if slope >= 0:
            direction, steepest = -at.gradient, True
            slope = dot(at.gradient, direction)
        found = wolfe(descent, direction, length, options["flatness"])
        if found is None:
            if steepest:
                raise no_lower(MOST_TRIED)
            direction, steepest = -at.gradient, True
            continue
        moved = dot(found.x - at.x, found.x - at.x) ** 0.5
        factor = max(0.0, dot(found.gradient, found.gradient - at.gradient) / dot(at.gradient, at.gradient))
        following = -found.gradient + factor * direction
        steepest = factor == 0
        at = descent.move(found)
        # the change of the value that is expected is that of the step before (Nocedal, Wright: 3.60)
        ahead = dot(at.gradient, following)
        before = moved / max(dot(direction, direction) ** 0.5, 1e-300)
        direction, length = following, before * slope / ahead if ahead < 0 else before
