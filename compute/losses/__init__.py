"""The registry of losses. A loss file has HELP, EXAMPLES (label settings), outputs(), label_dtype() and build()."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.registry import Registry

REGISTRY = Registry(__name__, "loss")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
