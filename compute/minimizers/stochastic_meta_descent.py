"""Stochastic meta-descent (Schraudolph: Local gain adaptation in stochastic gradient descent, 1999): each parameter's
rate follows how the newest gradients agree with where its rate has led it. Here no rate is more than doubled at once,
and a pass that ends higher than the start is done again with half the rates. Of maximize, stochastic meta-ascent."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.minimizers._descent import Descent, Vector, dot
from streamtrain.compute.options import Number, Option

HELP = "batch by batch, with a rate for each parameter that adapts itself"
OPTIONS: dict[str, Option] = {
    "rate": Number(above=0, default=0.1, help="that all parameters begin with"),
    "meta_rate": Number(least=0, default=0.1, help="how quickly rates change (mu)"),
    "memory": Number(least=0, most=1, default=0.99, help="how long a rate's own past counts (lambda)"),
    "value_tolerance": Number(
        least=0, default=1e-6, help="it ends where two passes in a row have lowered the value by less, relative to it; "
        "0: never"
    ),
}
TAKES_L1 = False
BY_BATCHES = True
_NEAR = 1e-3   # how far along v the gradient is looked at again: by their difference it is curved


def run(descent: Descent, options: dict[str, Any]) -> None:
    at = descent.begin()
    highest, rate = at.value, np.full(len(at.x), options["rate"])
    trace = np.zeros(len(at.x))
    while True:
        x, rates_before = at.x, rate
        for batch in range(max(1, descent.batches)):
            gradient = descent.look_at_batch(batch, x).gradient
            with np.errstate(all="ignore"):   # what is not finite is seen behind the pass
                rate = rate * np.clip(1 - options["meta_rate"] * gradient * trace, 0.5, 2.0)
                curved = _curved(descent, batch, x, gradient, trace)
                x = x - rate * gradient
                trace = options["memory"] * trace - rate * (gradient + options["memory"] * curved)
        found = descent.look(x)
        if found.value > highest:   # rates have grown too large: the pass is taken back
            rate, trace = rates_before / 2, np.zeros(len(at.x))
        else:
            at = descent.move(found)


def _curved(descent: Descent, batch: int, x: Vector, gradient: Vector, trace: Vector) -> Vector:
    """The second derivatives at x times the trace."""
    long = dot(trace, trace) ** 0.5
    if not 0 < long < np.inf:
        return np.zeros(len(x))
    near = _NEAR * max(1.0, dot(x, x) ** 0.5) / long
    found: Vector = (descent.look_at_batch(batch, x + near * trace).gradient - gradient) / near
    return found
