"""Texts, syntax trees and nodes of the sources, each made once for all tests of a process."""

from __future__ import annotations

import ast
import functools
import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def text(name: str) -> str:
    """Returns the text of a file by its path in the checkout."""
    return (ROOT / name).read_text(errors="replace")


class Trees(Mapping[str, ast.Module]):
    """Syntax trees by name, parsed when they are asked for."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def __getitem__(self, name: str) -> ast.Module:
        return _parsed(self._paths[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@functools.cache
def _parsed(path: str) -> ast.Module:
    """Without a search for garbage among a million nodes, which takes two thirds of the time."""
    gc.disable()
    try:
        return ast.parse(text(path))
    finally:
        gc.freeze()
        gc.enable()


def nodes(tree: ast.AST, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of these exact kinds in a tree, by kind."""
    by_kind = _by_kind(tree)
    for kind in kinds:
        yield from by_kind.get(kind, ())


def places(trees: Mapping[str, ast.Module], *kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST, str]]:
    """Every node of these kinds in several trees: the tree's name, the node, and its place to show."""
    for name, tree in trees.items():
        yield from ((name, node, f"{name}:{getattr(node, 'lineno', 0)}") for node in nodes(tree, *kinds))


@functools.cache
def _by_kind(tree: ast.AST) -> dict[type[ast.AST], list[ast.AST]]:
    """Returns nodes that have fields, by kind. `ast.walk` takes twice the time."""
    found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    left = [tree]
    for node in left:
        found[type(node)].append(node)
        for value in vars(node).values():
            children = value if type(value) is list else (value,)
            left += [child for child in children if isinstance(child, ast.AST) and child._fields]
    return found
