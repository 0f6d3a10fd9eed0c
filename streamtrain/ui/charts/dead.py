"""Rows that were not learned but became dead letters, by publication."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line

HELP = "rows that became dead letters, by publication"
TITLE = "Dead letters"
UNIT = "rows"
ORDER = 70
SOURCE = "publications"


def lines(names: Iterable[str]) -> list[Line]:
    return [Line("rows", "dead")] if "dead" in names else []
