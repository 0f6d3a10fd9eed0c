"""The registry of losses. A loss file has HELP, PREDICTION, LABEL (the kind of its label), OPTIONS (its settings),
EXAMPLES (label settings, and "settings" of its own, to try it with), outputs() and build(), whose score blocks say what
its figures are (compute/metrics.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from streamtrain.compute.losses._label import LabelKind, label_dtype
from streamtrain.compute.options import ClassNumbers, Option, Problem, problems, read
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "loss")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
__all__ = ["REGISTRY", "LabelKind", "describe", "get", "in_order", "label_dtype", "label_kind", "names", "normal",
           "options", "wrong"]


def label_kind(loss: str) -> LabelKind:
    """Returns the kind of label of a loss. Raises UserMistake where there is no such loss."""
    kind: LabelKind = get(loss).LABEL
    return kind


def options(name: str) -> dict[str, Option]:
    """A loss's settings."""
    declared: dict[str, Option] = get(name).OPTIONS
    return declared


def wrong(name: str, given: Mapping[str, Any], classes: Sequence[str]) -> Iterator[Problem]:
    """Everything that is wrong with a loss's settings; `classes`: the names of the label's classes in order."""
    known = options(name)
    found = list(problems(given, known, f"setting of {name}"))
    yield from found
    for setting in given.keys() - {problem.name for problem in found}:
        option = known[setting]
        if isinstance(option, ClassNumbers):
            yield from option.wrong(setting, given[setting], classes)


def normal(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings all filled in, as a manifest has them; nothing is wrong with them."""
    return {"name": name, **read(given, options(name))}


def in_order(name: str, given: Mapping[str, Any], classes: Sequence[str]) -> dict[str, Any]:
    """The same, numbers by the name of a class in the order of the classes: as build() takes them."""
    known = options(name)
    return {
        setting: option.in_order(value, classes) if isinstance(option := known.get(setting), ClassNumbers) else value
        for setting, value in normal(name, given).items()
    }
