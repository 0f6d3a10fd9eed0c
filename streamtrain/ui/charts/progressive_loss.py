"""The loss of each window of rows, scored before they are learned, beside the constant prediction's."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line, quality

HELP = "progressive loss, by window and in total, beside the constant prediction's"
TITLE = ""
UNIT = ""
ORDER = 10
SOURCE = "publications"


def lines(names: Iterable[str]) -> list[Line]:
    return quality(names, ("log_loss", "rmse", "loss"))
