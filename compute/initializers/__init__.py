"""The registry of initializers: what weights and tables start from. A file has HELP and start(inputs, outputs); a table
has its rows for inputs, and the numbers of one for outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.options import Option, Word
from streamtrain.compute.start import Start
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "initializer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
AUTO = "auto"


def words() -> list[str]:
    """Returns the values that `init` may have."""
    return [AUTO, *names()]


def told(name: str) -> dict[str, str]:
    """Returns what a model spec holds for a table's initializer."""
    return {} if name == AUTO else {"init": name}


def option(auto: str) -> Option:
    """The setting of a layer; `auto` says what that is."""
    return Word(of=words, default=AUTO, help=f"what weights start from; auto: {auto}")


def begin(name: str, auto: Start, inputs: int, outputs: int) -> Start:
    """By its name; `auto`: what that is."""
    chosen: Start = auto if name == AUTO else get(name).start(inputs, outputs)
    return chosen
