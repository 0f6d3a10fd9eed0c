"""The registry of roles, by what each may do on a Kafka that asks who one is: a file is one. It has HELP and
rights(job, topics) -> the rights it needs, where `topics` are the names of a job's topics by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from streamtrain.registry import Registry
from streamtrain.rights.right import Right

REGISTRY = Registry(__name__, "role")


def rights_of(role: str, job: str, topics: Mapping[str, str]) -> list[Right]:
    """One for each thing there is. Raises UserMistake for a role that there is none of."""
    asked: Callable[[str, Mapping[str, str]], list[Right]] = REGISTRY.get(role).rights
    found: dict[tuple[str, str], Right] = {}
    for right in asked(job, topics):
        before = found.get((right.kind, right.name))
        operations = (*(before.operations if before else ()), *right.operations)
        found[right.kind, right.name] = replace(right, operations=tuple(dict.fromkeys(operations)))
    return list(found.values())
