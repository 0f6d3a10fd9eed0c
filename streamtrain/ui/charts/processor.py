"""Processor time of a job's processes, as their metrics tell it."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "cores that each process keeps busy"
TITLE = "Processor"
UNIT = "cores"
ORDER = 210
SOURCE = "scrapes"


def lines(names: Iterable[str]) -> list[Line]:
    return charts.by_name(names, "cpu.")
