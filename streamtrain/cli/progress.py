"""A progress bar on stderr where that is a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from streamtrain.cli.output import Output


class Progress:
    """Counts something up to `total`, or without an end."""

    def __init__(self, out: Output, what: str, total: int | None) -> None:
        self._bar: Any = None
        if sys.stderr.isatty() and not out.quiet and not out.as_json:
            from streamtrain.cli.bar import bar

            self._bar = bar()
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
