"""The registry of optimizers. A file has HELP, RATE (the learning rate where none is given), OPTIONS (beside those of
all, or another default of one), state() (names of what it keeps for each parameter), op() (its kernel's name) and
factors() (the numbers of that formula); it may have FOLDED and PER_PARAMETER.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from streamtrain.compute.optimizers._common import COMMON, FEW, GROUPS, KEPT, OF_ALL, SETTINGS, SHRINKING
from streamtrain.compute.options import Option, Problem, problems, read
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "optimizer")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
_GROUPS = "groups"   # the table of tables of settings
__all__ = ["COMMON", "GROUPS", "KEPT", "REGISTRY", "SETTINGS", "by_group", "describe", "get", "names", "normal",
           "options", "own_options", "wrong"]


def own_options(name: str) -> dict[str, Option]:
    """An optimizer's settings that not all have."""
    declared: dict[str, Option] = get(name).OPTIONS
    return declared


def options(name: str) -> dict[str, Option]:
    """An optimizer's settings beside the learning rate."""
    return {**own_options(name), **{key: option for key, option in COMMON.items() if key not in own_options(name)}}


def wrong(name: str, given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Problem]]:
    """Everything that is wrong with an optimizer's settings: the tables below theirs, and the problem."""
    known, what = options(name), f"setting of {name}"
    settings = {key: value for key, value in given.items() if key != _GROUPS}
    found = list(problems(settings, known, what))
    for problem in found:
        yield (), replace(problem, near=(*problem.near, _GROUPS)) if problem.unknown else problem
    tables = given.get(_GROUPS, {})
    if not isinstance(tables, Mapping):
        yield (), Problem(_GROUPS, f"tables of settings of {', '.join(GROUPS)}", tables)
        return
    for group, table in tables.items():
        if group not in GROUPS:
            yield (_GROUPS,), Problem(group, f"unknown group; of parameters there are {', '.join(GROUPS)}", near=GROUPS)
        elif not isinstance(table, Mapping):
            yield (_GROUPS,), Problem(group, "a table of settings", table)
        else:
            found = list(problems(table, _optional(known), what))
            yield from (((_GROUPS, group), problem) for problem in found)
            if not found and not _keeps_the_same(name, read(settings, known), read({**settings, **table}, known)):
                yield (_GROUPS,), Problem(group, f"settings with which {name} keeps as much as without", dict(table))


def normal(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings all filled in, as a manifest has them; nothing is wrong with them."""
    known = options(name)
    tables = {group: _given(table, known) for group, table in given.get(_GROUPS, {}).items()}
    return {"name": name, **_read(given, known), **({_GROUPS: tables} if tables else {})}


def by_group(name: str, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of each group of parameters; nothing is wrong with them."""
    known, found = options(name), {}
    for group in GROUPS:
        kept = dict.fromkeys(SHRINKING, 0.0) if group in FEW else {}
        found[group] = {**_read(given, known), **kept, **_given(given.get(_GROUPS, {}).get(group, {}), known)}
    return found


def _read(given: Mapping[str, Any], known: Mapping[str, Option]) -> dict[str, Any]:
    return read({key: value for key, value in given.items() if key != _GROUPS}, known)


def _given(table: Mapping[str, Any], known: Mapping[str, Option]) -> dict[str, Any]:
    return {key: known[key].read(value) for key, value in table.items()}


def _optional(known: Mapping[str, Option]) -> dict[str, Option]:
    """Returns the options of a group, none of which has to be given."""
    return {key: replace(option, default=None) for key, option in known.items() if key not in OF_ALL}


def _keeps_the_same(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    entry = get(name)
    return bool(entry.state(one) == entry.state(other))
