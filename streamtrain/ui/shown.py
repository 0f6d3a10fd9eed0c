"""What a visitor asked for."""

from __future__ import annotations

from dataclasses import dataclass

from streamtrain.ui.cluster import Cluster

MOST_TOGETHER = 4  # jobs in one chart


@dataclass(frozen=True)
class Shown:
    """All of it stands in the page's address. `prefix`: what stands before every path."""

    cluster: Cluster
    jobs: tuple[str, ...] = ()
    x: str = "time"
    prefix: str = ""
