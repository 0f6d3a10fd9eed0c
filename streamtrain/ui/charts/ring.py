"""How full the ring is: batches that wait for workers or are being learned."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line

HELP = "slots of the ring that hold rows: nearly all, the workers are slow; nearly none, reading is"
TITLE = "Ring"
UNIT = "slots"
ORDER = 250
SOURCE = "scrapes"
_LINES = (Line("in use", "ring.used"), Line("there are", "ring.slots", aside=True))


def lines(names: Iterable[str]) -> list[Line]:
    known = set(names)
    return [line for line in _LINES if line.figure in known]
