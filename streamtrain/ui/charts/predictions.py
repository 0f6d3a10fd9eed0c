"""Predictions a second on the predictions topic, seen since this server began."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line

HELP = "predictions a second, since the page's server began"
TITLE = "Predictions a second"
UNIT = "/s"
ORDER = 80
SOURCE = "looks"


def lines(names: Iterable[str]) -> list[Line]:
    return [Line("predictions", "predictions_per_second")] if "predictions_per_second" in names else []
