"""The registry of backends. A file has HELP, PRIORITY_NAME, answers() and compile()."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.errors import UserMistake
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "backend")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get

PRIORITIES = {"cpu": 0, "cuda": 100}   # highest that answers wins; the reference is never chosen by itself


def choose(wanted: str = "auto", cpu_priority: int | None = None, gpu_priority: int | None = None) -> str:
    """The backend to use: `wanted`, or for "auto" the highest priority among those that answer.

    The priorities stand for BACKEND_PRIORITY_CPU and BACKEND_PRIORITY_GPU of the environment, which the command line
    reads. Raises UserMistake when a wanted backend does not answer.
    """
    if wanted != "auto":
        reason = get(wanted).answers()
        if reason:
            raise UserMistake(f"backend {wanted}: {reason}; choose backend = \"cpu\" or \"auto\"")
        return wanted
    given = {"cpu": cpu_priority, "cuda": gpu_priority}
    order = {name: PRIORITIES[name] if given[name] is None else int(given[name] or 0) for name in PRIORITIES}
    for name in sorted(order, key=lambda name: -order[name]):
        if get(name).answers() is None:
            return name
    return "cpu"


def devices() -> int:
    """GPUs that answer; 0 where the CPU is all there is."""
    cuda = get("cuda")
    return int(cuda.device_count()) if cuda.answers() is None else 0
