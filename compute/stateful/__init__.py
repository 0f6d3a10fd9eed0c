"""The registry of transforms with state: ops of the model's plan, which see the state of their round's start.

A file has HELP, OPTIONS (compute/options.py; the first is written under the transform's own name, { count = "origin" },
and names the column it reads), TRANSFORM, a Stateful of its own, and EXAMPLES: tables, each with columns to try.
"""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.options import Options
from streamtrain.compute.stateful.transform import Stateful
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "transform with state")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe


def get(name: str) -> Stateful:
    """A transform with state by name; UserMistake where there is none."""
    found: Stateful = REGISTRY.get(name).TRANSFORM
    return found


def options(name: str) -> Options:
    """A transform's own settings."""
    found: Options = REGISTRY.get(name).OPTIONS
    return found
