"""From a request's time stamp to that of its prediction, of a sample of the newest, since this server began."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "from a request's time stamp to its prediction's, of a sample of the newest"
TITLE = "Prediction delay"
UNIT = "ms"
ORDER = 90
SOURCE = "looks"
_LINES = (Line("median", "prediction_delay.median_ms"), Line("99 %", "prediction_delay.p99_ms", aside=True))


def lines(names: Iterable[str]) -> list[Line]:
    return charts.known(_LINES, names)
