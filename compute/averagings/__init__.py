"""The registry of averagings: what becomes of the workers' parameters at the end of a round. A file has HELP, OPTIONS
and build(builder, options): the blocks it needs beside those of the model, once these are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamtrain.compute.options import Option, Problem, problems, read
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "averaging")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
DEFAULT = "mean"


def options(name: str) -> dict[str, Option]:
    """Its settings."""
    declared: dict[str, Option] = get(name).OPTIONS
    return declared


def wrong(name: str, given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yields what is wrong with its settings."""
    return problems(given, options(name), f"setting of {name}")


def normal(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """As a model spec has it: {"name", settings}, all filled in; nothing is wrong with them."""
    return {"name": name, **read(given, options(name))}
