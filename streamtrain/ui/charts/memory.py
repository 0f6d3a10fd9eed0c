"""Memory of a job's processes, as their metrics tell it."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "memory by process; what several share is split among them (PSS)"
TITLE = "Memory"
UNIT = "MB"
ORDER = 220
SOURCE = "scrapes"


def lines(names: Iterable[str]) -> list[Line]:
    return charts.by_name(names, "pss.")
