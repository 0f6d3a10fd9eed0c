"""The registry of minimizers of a function whose gradient is known. A file has HELP, OPTIONS (beside those of all, or
another default of one), TAKES_L1 (whether it minimises l1 |p| on top), BY_BATCHES (whether it looks at parts of the
function) and run(descent, options), which moves descent until that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streamtrain.compute.minimizers._descent import COMMON, Descent, Function, Iteration, Minimum, Negative, Told
from streamtrain.compute.options import Option, problems, read
from streamtrain.errors import UserMistake
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "minimizer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
__all__ = ["COMMON", "REGISTRY", "Iteration", "Minimum", "check", "describe", "get", "maximize", "minimize", "names",
           "options"]


def options(name: str) -> dict[str, Option]:
    """All settings of a minimizer."""
    declared: dict[str, Option] = get(name).OPTIONS
    return {**declared, **{key: option for key, option in COMMON.items() if key not in declared}}


def check(name: str, settings: Mapping[str, Any]) -> None:
    """UserMistake for a minimizer that is none, and settings that are none of its."""
    for problem in problems(settings, options(name), f"setting of {name}"):
        raise UserMistake(f"{name}: {problem.name}: {problem}")


def minimize(
    function: Function, start: Any, optimizer: str = "lbfgs", *, callback: Told | None = None, **settings: Any
) -> Minimum:
    """The least value of function(x) -> (value, gradient) that is found from `start` on, and why it ended there.

    `settings` are the optimizer's (`streamtrain list minimizers`). A function may have `rounding`, the relative error
    of its values; `l1`, an array of what each |x| is multiplied by and added; `batches` and of_batch(number, x) -> the
    same of a part of it. `callback` gets each Iteration, and ends the search with what it returns, unless that is None.
    A value that is not finite is one that is too high.

    Raises UserMistake for settings that are none, a start that is no vector and a function that gives something else,
    and what function and callback raise.
    """
    chosen = get(optimizer)
    check(optimizer, settings)
    x = np.array(start, np.float64)
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise UserMistake(f"{optimizer}: start: expected a vector of finite numbers, got {start!r:.80}")
    read_settings = read(settings, options(optimizer))
    descent = Descent(function, x, read_settings, callback)
    if np.any(descent.l1) and not chosen.TAKES_L1:
        raise UserMistake(
            f"{optimizer}: expected l1 = 0, for |p| has no gradient at 0, got an l1 above 0; "
            'optimizer="owlqn" is for that'
        )
    return descent.outcome(lambda: chosen.run(descent, read_settings))


def maximize(
    function: Function, start: Any, optimizer: str = "lbfgs", *, callback: Told | None = None, **settings: Any
) -> Minimum:
    """As minimize, of the largest value; an l1 is taken away from it."""
    found = minimize(Negative(function), start, optimizer, callback=_of_negative(callback), **settings)
    return found.negative()


def _of_negative(callback: Told | None) -> Told | None:
    return None if callback is None else lambda iteration: callback(iteration.negative())

