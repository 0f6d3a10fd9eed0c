"""L-BFGS (Liu, Nocedal: On the limited memory BFGS method, 1989; Nocedal, Wright: Numerical optimization, 2006, 7.4 and
7.5) with a strong Wolfe line search."""

from __future__ import annotations

from typing import Any

from streamtrain.compute.minimizers._curvature import Curvature
from streamtrain.compute.minimizers._descent import Descent, dot, no_lower
from streamtrain.compute.minimizers._line_search import MOST_TRIED, wolfe
from streamtrain.compute.options import Option, Whole

HELP = "by second derivatives as the last steps tell of them, by line search"
OPTIONS: dict[str, Option] = {"pairs": Whole(least=1, most=100, default=10, help="steps that are remembered")}
TAKES_L1 = False
BY_BATCHES = False


def run(descent: Descent, options: dict[str, Any]) -> None:
    at, curvature = descent.begin(), Curvature(options["pairs"])
    while True:
        direction = -curvature.times(at.gradient)
        if dot(direction, at.gradient) >= 0:
            curvature.forget()
            direction = -at.gradient
        length = 1.0 if curvature else 1.0 / max(1.0, dot(at.gradient, at.gradient) ** 0.5)
        found = wolfe(descent, direction, length)
        if found is not None:
            curvature.note(at, found)
            at = descent.move(found)
        elif curvature:
            curvature.forget()
        else:
            raise no_lower(MOST_TRIED)
