"""The registry of routes beside the pages: a file is one. It has HELP, PATH and answer(cluster, request), which gives a
response of FastAPI's for a request of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "route")


def all_routes() -> Sequence[ModuleType]:
    return [REGISTRY.get(name) for name in REGISTRY.names()]
