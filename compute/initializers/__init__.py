"""The registry of initializers: what the weights of a layer start from. A file has HELP and start(inputs, outputs)."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "initializer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
