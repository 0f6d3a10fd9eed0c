"""How full the ring is: batches that wait for workers or are being learned."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui import charts
from streamtrain.ui.charts import Line

HELP = "slots of the ring that hold rows: nearly all, the workers are slow; nearly none, reading is"
TITLE = "Ring"
UNIT = "slots"
ORDER = 250
SOURCE = "scrapes"
_LINES = (Line("in use", "ring.used"), Line("there are", "ring.slots", aside=True))


def lines(names: Iterable[str]) -> list[Line]:
    return charts.known(_LINES, names)
