"""A bar of the rows that a fit has trained, on standard error where that is a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamtrain.run.host import Event

_MOST_MEANT = 100_000  # passes: of more something else ends training


@contextmanager
def show_progress(
    visible: bool, rows: Any, epochs: int, on_event: Callable[[Event], None]
) -> Iterator[Callable[[Event], None]]:
    """Yields the function that takes events: it calls `on_event`, and moves the bar if one is shown."""
    if not (visible and sys.stderr.isatty()):
        yield on_event
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        count = _count(rows)
        task = bar.add_task("rows", total=None if count is None or epochs > _MOST_MEANT else count * epochs)

        def heard(event: Event) -> None:
            if event["event"] in ("progress", "published", "ended"):
                bar.update(task, completed=event["rows"], description=_describe(event) or None)
            on_event(event)

        yield heard


def _describe(event: Event) -> str:
    """The newest loss, once there is one."""
    window = event.get("metrics", {}).get("window", {})
    name = next((name for name in ("log_loss", "rmse", "loss") if name in window), None)
    return "" if name is None else f"{name} {window[name]:.4f}"


def _count(rows: Any) -> int | None:
    """Returns the number of rows, if it is known before they are read."""
    if isinstance(rows, Mapping):
        rows = next(iter(rows.values()), ())
    return len(rows) if hasattr(rows, "__len__") else None
