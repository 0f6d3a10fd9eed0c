"""The registry of averagings: what becomes of the workers' parameters at the end of a round. An entry is
build(builder, options), which adds the blocks it needs to those of the model, once these are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.builder import Builder
from streamtrain.compute.options import Number, Option, Problem, problems, read
from streamtrain.registry import ModuleRegistry

DEFAULT = "mean"


@dataclass(frozen=True)
class Averaging:
    """An entry and its settings."""

    build: Callable[[Builder, Mapping[str, Any]], None]
    help: str
    options: Mapping[str, Option]


REGISTRY = ModuleRegistry(__name__, "averaging", Averaging)
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get


@REGISTRY.entry("the mean of the workers' parameters, by the weight of their rows", {})
def mean(builder: Builder, options: Mapping[str, Any]) -> None:
    """The workers' mean, weighted by what they have trained on, which needs nothing of its own."""


@REGISTRY.entry(
    "the mean, and on along its way with Nesterov's momentum, so that workers learn as much together as one would",
    {
        "rate": Number(
            above=0, most=10, default=1.0, help="what the way is multiplied by; 1 with momentum 0 is the mean"
        ),
        "momentum": Number(least=0, below=1, default=0.2, help="how much of a round's way the next goes on with"),
    },
)
def outer_nesterov(builder: Builder, options: Mapping[str, Any]) -> None:
    """Nesterov's step along the mean's way: the outer step of DiLoCo (Douillard et al., 2023).

    The mean of W workers has gone as far as one of them alone; a velocity makes up for that. Each dense parameter gets
    one; tables have the mean. The settings stand in the state too.
    """
    settings = np.array([options["rate"], options["momentum"]])
    builder.statistic(_native.OUTER_SETTINGS, "optimizer", "sum", len(settings), start=settings)
    for block in builder.parameters:
        builder.statistic(_native.OUTER_VELOCITY + block.name, "optimizer", "outer", *block.shape)


def options(name: str) -> Mapping[str, Option]:
    """Returns the settings of an averaging."""
    return get(name).options


def wrong(name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields what is wrong with its settings."""
    return problems(given, options(name), f"setting of {name}")


def normal(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the averaging as a model spec has it: {"name", settings}, all filled in. The settings must be valid."""
    return {"name": name, **read(given, options(name))}
