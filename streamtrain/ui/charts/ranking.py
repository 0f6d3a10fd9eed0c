"""How well rows are put in order: AUC; of numbers, the share of their variance that is told."""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain.ui.charts import Line, quality

HELP = "AUC (of numbers R²; of several classes macro F1), by window and in total"
TITLE = ""
UNIT = ""
ORDER = 20
SOURCE = "publications"


def lines(names: Iterable[str]) -> list[Line]:
    return quality(names, ("auc", "r2", "macro_f1"))
