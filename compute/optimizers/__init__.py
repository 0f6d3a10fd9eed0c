"""The registry of optimizers. A file has HELP, OPTIONS, state(), betas(), update() and update_rows().

OPTIONS are its settings beside the learning rate (compute/options.py). state() names what it keeps for each parameter.
"""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.options import Option
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "optimizer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get


def options(name: str) -> dict[str, Option]:
    """An optimizer's settings beside the learning rate."""
    declared: dict[str, Option] = get(name).OPTIONS
    return declared
