"""The registry of schedules of the learning rate. An entry is factor(options, step): by what the rate is multiplied
after so many steps. One that goes by more than these keeps it in the state, in a block that its `build` adds.

A round's rate is fixed when it begins, by the state it starts from: the same whoever trains it, and in a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute import exact
from streamtrain.compute.builder import Builder
from streamtrain.compute.options import Flag, Number, Option, Problem, Whole, problems, read
from streamtrain.errors import UserMistake
from streamtrain.registry import ModuleRegistry

DEFAULT = "constant"
MAX_STEPS = 1 << 62
STANDING = _native.PLATEAU

COMMON: dict[str, Option] = {
    "warm_up": Whole(most=MAX_STEPS, default=0, help="steps over which the rate grows to the schedule's, in a line")
}


@dataclass(frozen=True)
class Schedule:
    """An entry with the settings of its own, and `build(builder, options)` if it keeps something in the state."""

    factor: Callable[[Mapping[str, Any], int], float]
    help: str
    options: Mapping[str, Option]
    build: Callable[[Builder, Mapping[str, Any]], None] | None = None


REGISTRY = ModuleRegistry(__name__, "schedule", Schedule)
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get


@REGISTRY.entry("the same rate at every step", {})
def constant(options: Mapping[str, Any], step: int) -> float:
    """The rate as it is."""
    return 1.0


@REGISTRY.entry(
    "half a cosine from 1 down to end, with restarts",
    {
        "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps of the first fall"),
        "end": Number(least=0, most=1, default=0.0, help="what is left of the rate at its end"),
        "restarts": Flag(default=False, help="begin again; without, the rate stays at its end"),
        "growth": Whole(least=1, most=64, default=1, help="how many times as long as the one before each fall is"),
    },
)
def cosine(options: Mapping[str, Any], step: int) -> float:
    """A rate that falls along half a cosine, again and again with restarts (Loshchilov, Hutter: SGDR, 2017)."""
    length: int = options["steps"]
    while options["restarts"] and step >= length:
        falls = step // length if options["growth"] == 1 else 1
        step, length = step - falls * length, length * options["growth"]
    way = min(step, length) / length
    return float(options["end"] + (1.0 - options["end"]) * (1.0 + exact.cosine(way)) / 2)


@REGISTRY.entry(
    "gamma^(step / steps)",
    {
        "gamma": Number(above=0, most=1, default=0.5, help="what is left of the rate after `steps` steps"),
        "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps"),
    },
)
def exponential(options: Mapping[str, Any], step: int) -> float:
    """A rate that falls by the same share at every step."""
    return exact.power(options["gamma"], step / options["steps"])


@REGISTRY.entry(
    "1 / (1 + gamma step)^power",
    {
        "gamma": Number(least=0, default=1e-4, help="how soon it falls"),
        "power": Number(above=0, most=4, default=1.0, help="how far it falls"),
    },
)
def inverse(options: Mapping[str, Any], step: int) -> float:
    """A rate that falls with a power of the steps.

    Robbins, Monro: A stochastic approximation method, 1951: above 1/2, at most 1.
    """
    return exact.power(1.0 + options["gamma"] * step, -options["power"])


@REGISTRY.entry(
    "up to the rate and down to almost nothing, once",
    {
        "steps": Whole(least=2, most=MAX_STEPS, default=10_000, help="steps of the cycle"),
        "up": Number(above=0, below=1, default=0.3, help="share of them on the way up"),
        "start": Number(above=0, most=1, default=0.04, help="share of the rate it begins with"),
        "end": Number(least=0, most=1, default=4e-6, help="share of the rate it ends with, and stays at"),
    },
)
def one_cycle(options: Mapping[str, Any], step: int) -> float:
    """One cycle up and down (Smith, Topin: Super-convergence, 2018), along cosines."""
    last, top = options["steps"] - 1, options["up"] * options["steps"] - 1
    if step <= top and top > 0:
        return _between(options["start"], 1.0, step / top)
    return _between(1.0, options["end"], min(1.0, (step - top) / (last - top)))


def _between(first: float, then: float, way: float) -> float:
    return then + (first - then) * (1.0 + exact.cosine(way)) / 2


def _plateau_block(builder: Builder, options: Mapping[str, Any]) -> None:
    """Adds the block that holds where the plateau stands and its settings (native/state/rules/plateau.h)."""
    begun = dict.fromkeys(STANDING, 0.0) | {"left": 1.0, "every": options["rows"]}
    begun |= {name: options[name] for name in ("patience", "threshold", "factor", "least")}
    start = np.array([begun[name] for name in STANDING], np.float64)
    builder.statistic(_native.SCHEDULE_STANDING, "optimizer", "plateau", len(STANDING), start=start)


@REGISTRY.entry(
    "times factor where the loss of the newest rows has not improved for some evaluations",
    {
        "factor": Number(above=0, below=1, default=0.5, help="what is left of the rate after a fall"),
        "patience": Whole(least=1, most=1_000_000, default=5, help="evaluations in a row, none better, until it falls"),
        "rows": Whole(least=1, most=1 << 40, default=_native.WINDOW_ROWS, help="rows of an evaluation, at the least"),
        "threshold": Number(
            least=0, below=1, default=1e-3, help="share of the best loss by which a better one is less"
        ),
        "least": Number(least=0, most=1, default=0.0, help="what is left of the rate in any case"),
    },
    build=_plateau_block,
)
def plateau(options: Mapping[str, Any], step: int) -> float:
    """A rate that falls where the loss stops improving (in PyTorch ReduceLROnPlateau).

    The loss is that of rows before they are learned. What the schedule remembers is a block of the state, so that the
    state that a round starts from gives its rate. By the steps alone the rate stays.
    """
    return 1.0


@REGISTRY.entry(
    "(1 - step / steps)^power from 1 down to end",
    {
        "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps until the end"),
        "power": Number(above=0, most=16, default=1.0, help="1: in a line"),
        "end": Number(least=0, most=1, default=0.0, help="what is left of the rate, and stays"),
    },
)
def polynomial(options: Mapping[str, Any], step: int) -> float:
    """A rate that falls to its end in so many steps."""
    left = 1.0 - min(step, options["steps"]) / options["steps"]
    return float(options["end"] + (1.0 - options["end"]) * exact.power(left, options["power"]))


@REGISTRY.entry(
    "times gamma after every so many steps",
    {
        "steps": Whole(least=1, most=MAX_STEPS, default=10_000, help="steps between two falls"),
        "gamma": Number(above=0, most=1, default=0.1, help="what is left of the rate after one"),
    },
)
def step(options: Mapping[str, Any], step: int) -> float:
    """A rate that falls in steps."""
    return exact.power(options["gamma"], step // options["steps"])


def own_options(name: str) -> Mapping[str, Option]:
    """A schedule's settings that not all have."""
    return get(name).options


def options(name: str) -> dict[str, Option]:
    return {**own_options(name), **COMMON}


def normal(name: str, given: Mapping[str, Any], rate: float) -> dict[str, Any]:
    """Returns the schedule as round settings and manifests have it: {"name", "rate", settings}.

    The settings must be valid.
    """
    return {"name": name, "rate": float(rate), **read(given, options(name))}


def is_constant(schedule: Mapping[str, Any]) -> bool:
    """Returns whether the rate is the same at every step."""
    return schedule.get("name") == DEFAULT and not schedule.get("warm_up")


def build(builder: Builder, name: str, options: Mapping[str, Any]) -> None:
    """Adds what a schedule keeps in the state."""
    its = get(name).build
    if its is not None:
        its(builder, options)


def kept(name: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns what a model spec holds for a schedule that keeps something in the state: {"name", own settings}. The
    state holds these settings too. Returns None for other schedules. Nothing is wrong with the settings."""
    if get(name).build is None:
        return None
    own = own_options(name)
    return {"name": name, **read({key: value for key, value in given.items() if key in own}, own)}


def wrong(name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields what is wrong with the schedule's own settings."""
    return problems(given, own_options(name), f"setting of {name}")


def rates(schedule: Mapping[str, Any]) -> Callable[..., float]:
    """The learning rate by the steps before a round, and by what the state it starts from has `left` of it; of what
    normal() gave. UserMistake where it did not."""
    settings = {key: value for key, value in schedule.items() if key not in ("name", "rate")}
    name, rate = schedule.get("name"), schedule.get("rate")
    if not isinstance(name, str) or not isinstance(rate, float | int):
        example = 'a schedule such as {"name": "constant", "rate": 1e-3}'
        raise UserMistake(f"learning rate: expected {example}, got {dict(schedule)}")
    for problem in problems(settings, options(name), f"setting of {name}"):
        raise UserMistake(f"learning rate: {name}: {problem.name}: {problem}")
    chosen, entry = read(settings, options(name)), get(name)

    def rate_of(step: int, left: float = 1.0) -> float:
        warm = (step + 1) / chosen["warm_up"] if step < chosen["warm_up"] else 1.0
        return float(rate * warm * entry.factor(chosen, step) * left)

    return rate_of
