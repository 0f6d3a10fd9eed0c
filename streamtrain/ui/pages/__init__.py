"""The registry of pages: a file is one. It has HELP, TITLE, ROUTE, ORDER and build(ui, shown), which makes the page for
one visitor with NiceGUI's `ui`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "page")


def in_order() -> Sequence[ModuleType]:
    """Every page, as the head of each names them."""
    return sorted((REGISTRY.get(name) for name in REGISTRY.names()), key=lambda page: page.ORDER)
