"""How long a publication's transaction takes."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line

HELP = "time of a publication's transaction, the mean of those since the last question"
TITLE = "Transaction"
UNIT = "ms"
ORDER = 260
SOURCE = "scrapes"


def lines(names: Iterable[str]) -> list[Line]:
    return [Line("transaction", "transaction_ms")] if "transaction_ms" in names else []
