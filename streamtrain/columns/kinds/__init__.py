"""Column kinds: each file that has a HELP is one, named by its stem; its native half is native/decode/kinds/<stem>.h.

A kind's file has HELP and KIND, a Kind of its own: what its columns may say, which blocks of a slot they become, what
stands in for a missing cell. Its slow half is tests/oracles/kinds/<stem>.py.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from streamtrain.columns.kinds.kind import Kind, Settings
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "kind")
FEATURE = "feature"  # the role of columns that are learned from: their kind says what they are
DEFAULT = "number"


@cache
def kinds() -> dict[str, Kind[Any]]:
    """Every kind by name."""
    return {name: REGISTRY.get(name).KIND for name in REGISTRY.names()}


@cache
def features() -> dict[str, Kind[Any]]:
    """Returns the kinds that a feature column can have, the default first."""
    found = {name: kind for name, kind in kinds().items() if kind.role == FEATURE}
    return {DEFAULT: found[DEFAULT], **found}


@cache
def roles() -> dict[str, Kind[Any]]:
    """The kind of each role but the feature's."""
    return {kind.role: kind for kind in kinds().values() if kind.role != FEATURE}


def kind_of(column: Settings) -> Kind[Any]:
    """Returns the kind of a column."""
    return features()[column.kind or DEFAULT] if column.role == FEATURE else roles()[column.role]
