"""Memory of each GPU of a job's machine that is in use."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "memory of each GPU in use, by whoever uses it"
TITLE = "GPU memory"
UNIT = "MB"
ORDER = 240
SOURCE = "scrapes"


def lines(names: Iterable[str]) -> list[Line]:
    return charts.by_name(names, "gpu.memory.")
