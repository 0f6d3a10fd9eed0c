"""Steepest descent, each step first as long as the last change of the gradient suggests (Barzilai, Borwein: Two-point
step size gradient methods, 1988), then halved until the value is enough lower. Of maximize, gradient ascent."""

from __future__ import annotations

from typing import Any

from streamtrain.compute.minimizers._descent import Descent, dot, no_lower
from streamtrain.compute.minimizers._line_search import MOST_TRIED, halved
from streamtrain.compute.options import Number, Option

HELP = "along the gradient, by backtracking"
OPTIONS: dict[str, Option] = {"step": Number(above=0, default=1.0, help="the length of the first step that is tried")}
TAKES_L1 = False
BY_BATCHES = False
_LONGEST = 1e10   # times the gradient


def run(descent: Descent, options: dict[str, Any]) -> None:
    at = descent.begin()
    length = options["step"] / max(1.0, dot(at.gradient, at.gradient) ** 0.5)
    while True:
        found = halved(descent, -at.gradient, length)
        if found is None:
            raise no_lower(MOST_TRIED)
        moved, bent = found.x - at.x, found.gradient - at.gradient
        curved = dot(moved, bent)
        length = min(dot(moved, moved) / curved, _LONGEST) if curved > 0 else 2 * length
        at = descent.move(found)
