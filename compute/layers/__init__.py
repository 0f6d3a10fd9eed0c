"""The registry of layers. A layer's file has HELP, EXAMPLES (tables of the job file) and build()."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "layer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
