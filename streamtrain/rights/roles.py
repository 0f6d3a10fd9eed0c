"""The rights of a role of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from streamtrain.rights import REGISTRY
from streamtrain.rights.right import Right


def rights_of(role: str, job: str, topics: Mapping[str, str]) -> list[Right]:
    """One for each thing there is. Raises UserMistake for a role that there is none of."""
    asked: Callable[[str, Mapping[str, str]], list[Right]] = REGISTRY.get(role).rights
    found: dict[tuple[str, str], Right] = {}
    for right in asked(job, topics):
        before = found.get((right.kind, right.name))
        operations = (*(before.operations if before else ()), *right.operations)
        found[right.kind, right.name] = replace(right, operations=tuple(dict.fromkeys(operations)))
    return list(found.values())
