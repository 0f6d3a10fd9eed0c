"""The registry of backends. A file has HELP, PRIORITY, PRIORITY_NAME, CALLS_OUT (whether its plans take networks of
other libraries), TILE_ROWS (rows of a batch that are computed at a time, 0: all), device_count(), answers() and
compile(). "auto" is the backend of the highest priority that answers: PRIORITY, or the number that the environment
gives by PRIORITY_NAME.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from streamtrain.errors import UserMistake
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "backend")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get


def priority_names() -> dict[str, str]:
    """Returns the environment's name for the priority of each backend."""
    return {name: get(name).PRIORITY_NAME for name in names()}


def priorities() -> dict[str, int]:
    """Returns the priority of each backend. Raises UserMistake where the environment gives no whole number."""
    found: dict[str, int] = {}
    for backend, name in priority_names().items():
        text = os.environ.get(name)
        try:
            found[backend] = get(backend).PRIORITY if text is None else int(text)
        except ValueError:
            raise UserMistake(f"{name}: expected a whole number, got {text!r}") from None
    return found


def choose(backend: str = "auto", calls_out: bool = False) -> str:
    """The backend to use: `backend`, or for "auto" the highest priority among those that answer.

    `calls_out`: of those whose plans call out. Raises UserMistake when a wanted backend does not answer, and as
    priorities().
    """
    if backend != "auto":
        reason = get(backend).answers()
        if reason:
            raise UserMistake(f"backend {backend}: {reason}; choose backend = \"cpu\" or \"auto\"")
        return backend
    order = priorities()
    candidates = [name for name in sorted(order, key=lambda name: -order[name]) if get(name).CALLS_OUT or not calls_out]
    answering = [name for name in candidates if get(name).answers() is None]
    return answering[0] if answering else "cpu"


def devices() -> int:
    """GPUs of the backend that is chosen; 0 where that is the CPU's."""
    return int(get(choose()).device_count())
