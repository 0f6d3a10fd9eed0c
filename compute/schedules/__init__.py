"""The registry of schedules of the learning rate. A file has HELP, OPTIONS and factor(options, step): by what the rate
is multiplied behind so many steps. One that goes by more than these keeps it in the state: build(builder, options).

A round's rate is fixed when it begins, by the state it starts from: the same whoever trains it, and in a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamtrain.compute.options import Option, Problem, Whole, problems, read
from streamtrain.errors import UserMistake
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "schedule")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
DEFAULT = "constant"
MAX_STEPS = 1 << 62

COMMON: dict[str, Option] = {
    "warm_up": Whole(most=MAX_STEPS, default=0, help="steps over which the rate grows to the schedule's, in a line")
}


def own_options(name: str) -> dict[str, Option]:
    """A schedule's settings that not all have."""
    declared: dict[str, Option] = get(name).OPTIONS
    return declared


def options(name: str) -> dict[str, Option]:
    return {**own_options(name), **COMMON}


def normal(name: str, given: Mapping[str, Any], rate: float) -> dict[str, Any]:
    """As terms and manifests have it: {"name", "rate", settings}; nothing is wrong with the settings."""
    return {"name": name, "rate": float(rate), **read(given, options(name))}


def is_constant(told: Mapping[str, Any]) -> bool:
    """Returns whether the rate is the same at every step."""
    return told.get("name") == DEFAULT and not told.get("warm_up")


def kept(name: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns what a model spec holds for a schedule that keeps something in the state: {"name", own settings}. The
    state holds these settings too. Returns None for other schedules. Nothing is wrong with the settings."""
    if not hasattr(get(name), "build"):
        return None
    own = own_options(name)
    return {"name": name, **read({key: value for key, value in given.items() if key in own}, own)}


def wrong(name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields what is wrong with the schedule's own settings."""
    return problems(given, own_options(name), f"setting of {name}")


def rates(told: Mapping[str, Any]) -> Callable[..., float]:
    """The learning rate by the steps before a round, and by what the state it starts from has `left` of it; of what
    normal() gave. UserMistake where it did not."""
    settings = {key: value for key, value in told.items() if key not in ("name", "rate")}
    name, rate = told.get("name"), told.get("rate")
    if not isinstance(name, str) or not isinstance(rate, float | int):
        wanted = 'a schedule such as {"name": "constant", "rate": 1e-3}'
        raise UserMistake(f"learning rate: expected {wanted}, got {dict(told)}")
    for problem in problems(settings, options(name), f"setting of {name}"):
        raise UserMistake(f"learning rate: {name}: {problem.name}: {problem}")
    chosen, entry = read(settings, options(name)), get(name)

    def rate_of(step: int, left: float = 1.0) -> float:
        warm = (step + 1) / chosen["warm_up"] if step < chosen["warm_up"] else 1.0
        return float(rate * warm * entry.factor(chosen, step) * left)

    return rate_of
