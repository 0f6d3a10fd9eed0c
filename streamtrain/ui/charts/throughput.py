"""Rows learned a second, from publication to publication."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line

HELP = "rows learned a second, from publication to publication"
TITLE = "Rows a second"
UNIT = "rows/s"
ORDER = 40
SOURCE = "publications"


def lines(names: Iterable[str]) -> list[Line]:
    return [Line("learned", "rows_per_second")] if "rows_per_second" in names else []
