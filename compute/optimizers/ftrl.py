"""FTRL-proximal (McMahan et al.: Ad click prediction, a view from the trenches, 2013). Averaging gives a parameter that
is the mean of the workers'; the next step of each goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamtrain.compute.optimizers._common import COMMON
from streamtrain.compute.options import Number, Option

HELP = "follows the regularised leader, with a rate for each coordinate"
RATE = 0.1
FOLDED = ("l1", "l2")   # the formula has them itself
OPTIONS: dict[str, Option] = {
    "beta": Number(above=0, default=1.0, help="added to the root of the sum of g^2"),
    "l1": replace(COMMON["l1"], help="as much of |z| leaves a parameter at exactly 0"),
    "l2": replace(COMMON["l2"], help="times p^2 / 2 of all steps together"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("z", "n")


def factors(options: Mapping[str, float]) -> tuple[float, ...]:
    return options["beta"], options["l1"], options["l2"]


def op(options: Mapping[str, float]) -> str:
    return "ftrl"
