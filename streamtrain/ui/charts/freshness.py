"""How old the newest row was when it was published, by its event time, and the time between publications."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "seconds from a row's event to the snapshot that knows it, and from publication to publication"
TITLE = "Freshness"
UNIT = "s"
ORDER = 60
SOURCE = "publications"
_LINES = (Line("event to snapshot", "freshness_s"), Line("between publications", "interval_s", aside=True))


def lines(names: Iterable[str]) -> list[Line]:
    return charts.known(_LINES, names)
