"""The registry of optimizers. A file has HELP, DEFAULTS, STATE, betas(), update() and update_rows()."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "optimizer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
