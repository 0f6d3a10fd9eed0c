"""How busy each GPU of a job's machine is."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "share of the time in which a GPU computed, whoever used it"
TITLE = "GPU busy"
UNIT = "%"
ORDER = 230
SOURCE = "scrapes"


def lines(names: Iterable[str]) -> list[Line]:
    return charts.by_name(names, "gpu.used.")
