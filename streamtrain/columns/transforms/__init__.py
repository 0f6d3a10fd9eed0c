"""Transforms: each file with a HELP is one; its halves are native/decode/transforms/<stem>.h, tests/oracles/transforms.

A file has HELP, OPTIONS (the first is written under the transform's own name, { log1p = "distance" }), TRANSFORM, a
Transform, and EXAMPLES: tables, each with columns and cells to try. Those with state are files of compute/stateful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamtrain.columns.transforms.transform import Transform
from streamtrain.columns.transforms.with_state import WithState
from streamtrain.compute import stateful
from streamtrain.compute.options import Options, problems, read
from streamtrain.registry import Registry, nearest

REGISTRY = Registry(__name__, "transform")
names: Callable[[], list[str]] = REGISTRY.names


def known() -> list[str]:
    """All there are, those with state too."""
    return sorted([*names(), *stateful.names()])


def get(name: str) -> Transform:
    """A transform by name."""
    if name in stateful.names():
        return WithState(stateful.get(name))
    found: Transform = REGISTRY.get(name).TRANSFORM
    return found


def options(name: str) -> Options:
    """A transform's own settings."""
    if name in stateful.names():
        return stateful.options(name)
    found: Options = REGISTRY.get(name).OPTIONS
    return found


def taken_apart(table: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Which transform a table is of, its own settings, and those of the columns it makes. ValueError says what is wrong
    with it."""
    found = [name for name in table if name in known()]
    if len(found) > 1:  # one's setting may have another's name
        found = [name for name in found if not any(name in options(other) for other in found if other != name)]
    if len(found) != 1:
        near = "" if found else next(filter(None, (nearest(name, known()) for name in table)), "")
        hint = f"; did you mean {near!r}?" if near else ""
        got = ", ".join(found or table) or "none"
        raise ValueError(f"expected one transform, among {', '.join(known())}, got {got}{hint}")
    own = options(found[0])
    given = {name: value for name, value in table.items() if name in own}
    wrong = list(problems(given, own, f"setting of {found[0]}"))
    if wrong:
        raise ValueError("; ".join(f"{problem.name}: {problem}" for problem in wrong))
    return found[0], read(given, own), {name: value for name, value in table.items() if name not in own}


def in_step(name_count: int, index: int, value: Any, expand: Callable[[str], list[str]]) -> Any:
    """A setting of the transform that stands `index` among those a name in braces stands for. ValueError where its own
    braces stand for another number."""
    if isinstance(value, str) and "{" in value:
        found = expand(value)
        if len(found) != name_count:
            raise ValueError(f"expected braces for as many as the name's, {name_count:,}, got {len(found):,}")
        return found[index]
    if isinstance(value, list | tuple):
        return [in_step(name_count, index, each, expand) for each in value]
    return value


def unknown(name: str, known: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is wrong if a transform reads a column and none of that name stands before it."""
    if name not in known:
        near = nearest(name, known)
        yield f"expected a column that stands before it, got {name!r}" + (f"; did you mean {near!r}?" if near else "")
