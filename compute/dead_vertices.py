"""A pass over the vertices of a graph: what no loss depends on is not computed, and has no parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def live(reads: Mapping[str, Sequence[str]], ends: Sequence[str]) -> set[str]:
    """The names that the ends depend on, and theirs; `reads`: what each vertex reads."""
    found, waiting = set[str](), list(ends)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += reads.get(name, ())
    return found
