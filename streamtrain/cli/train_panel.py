"""The panel of `streamtrain train` on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from streamtrain.cli.quality_table import quality_table, window_name


class TrainPanel(Live):
    """A panel that is drawn anew in its place on stderr; lines of text stand above it."""

    def __init__(self) -> None:
        super().__init__(console=Console(stderr=True), refresh_per_second=4, transient=True)

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def show(self, figures: Iterable[tuple[str, str, str]], metrics: Mapping[str, Any]) -> None:
        self.update(panel(figures, metrics))


def panel(figures: Iterable[tuple[str, str, str]], metrics: Mapping[str, Any]) -> Group:
    """Rows of a name, a figure and a remark, above a table of the metrics."""
    table = Table.grid(padding=(0, 2))
    for row in figures:
        table.add_row(*row)
    window, total = metrics.get("window") or {}, metrics.get("total") or {}
    return Group(table, *([quality_table({window_name(window): window, "in total": total})] if total else []))
