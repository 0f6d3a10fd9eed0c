"""The registry of layers. A file has HELP, OPTIONS (compute/options.py), EXAMPLES, shape() (compute/shape.py), build().

The first option is written under the layer's own name, { dense = 64 }, so that name is free in the file. One with
is_linear(**options) may be asked to start at 0: its build() takes `zero`. EXAMPLES are settings to try it with; each
word an option takes is tried too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from streamtrain.compute.options import Option, Problem, problems, read
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "layer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
T = TypeVar("T")


def options(kind: str) -> dict[str, Option]:
    """A layer's settings as its table has them: the first under the layer's name."""
    return _written(kind, get(kind).OPTIONS)


def wrong(layer: Mapping[str, Any]) -> Iterator[Problem]:
    """Everything that is wrong with the table of one layer."""
    kinds = [name for name in layer if name in names()]
    if len(kinds) > 1:
        yield Problem("", "one layer to a table", kinds)
    elif not kinds:
        yield Problem("", f"a layer, one of {', '.join(names())}", dict(layer), names())
    else:
        yield from problems(layer, options(kinds[0]), f"option of {kinds[0]}")


def parse(layer: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A layer's kind, and what its build() takes, from a table in which nothing is wrong."""
    kind = next(name for name in layer if name in names())
    return kind, dict(zip(get(kind).OPTIONS, read(layer, options(kind)).values(), strict=True))


def examples(kind: str) -> list[dict[str, Any]]:
    """Tables to try a layer with: those its file gives, the first of them with each word that an option takes."""
    module, settings = get(kind), options(kind)
    given = [_written(kind, example) for example in module.EXAMPLES]
    words = [{**given[0], name: word} for name, option in settings.items() for word in option.names()]
    return [*given, *(each for each in words if each not in given)]


def _written(kind: str, settings: Mapping[str, T]) -> dict[str, T]:
    """Settings by the names they have in a table."""
    first = next(iter(get(kind).OPTIONS))
    return {kind if name == first else name: setting for name, setting in settings.items()}
