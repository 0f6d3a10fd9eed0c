"""The selection that a visitor made, as the address has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamtrain.ui.cluster import Cluster

MOST_TOGETHER = 4  # jobs in one chart


@dataclass(frozen=True)
class Selection:
    """All of it stands in the page's address. `prefix`: what stands before every path; `query`: what else there is,
    which a page reads for itself."""

    cluster: Cluster
    jobs: tuple[str, ...] = ()
    x: str = "time"
    prefix: str = ""
    query: Mapping[str, str] = field(default_factory=dict)


def whole(text: str | None) -> int | None:
    """A whole number of the address; None where it is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 18 else None
