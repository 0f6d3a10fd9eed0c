"""Records that are there and not learned yet, by partition, seen since this server began."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line

HELP = "records behind, by partition, since the page's server began"
TITLE = "Lag"
UNIT = "records"
ORDER = 50
SOURCE = "looks"
_MOST = 16  # partitions drawn


def lines(names: Iterable[str]) -> list[Line]:
    found = sorted((name for name in names if name.startswith("lag.")), key=lambda name: int(name.partition(".")[2]))
    return [Line(f"partition {name.partition('.')[2]}", name) for name in found[:_MOST]]
