"""How often the prediction is right; of numbers, how far it is off."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line, quality

HELP = "accuracy (of numbers the mean absolute error), by window and in total, beside the constant prediction's"
TITLE = ""
UNIT = ""
ORDER = 30
SOURCE = "publications"


def lines(names: Iterable[str]) -> list[Line]:
    return quality(names, ("accuracy", "mae"))
