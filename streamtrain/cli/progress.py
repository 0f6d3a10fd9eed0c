"""A progress bar on stderr where that is a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from streamtrain.cli.output import Output


class Progress:
    """Counts something up to `total`, or without an end."""

    def __init__(self, out: Output, what: str, total: int | None) -> None:
        self._bar: Bar | None = None
        if sys.stderr.isatty() and not out.quiet and not out.as_json:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=count)
