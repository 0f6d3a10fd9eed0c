"""How `streamtrain demo` shows itself: a live screen on a terminal, plain lines elsewhere, JSON lines with --json."""

from __future__ import annotations

import time
from typing import Any

from rich.live import Live

from streamtrain.cli.demo_screen import ending, plain, screen
from streamtrain.cli.output import Output
from streamtrain.demo.standing import Standing
from streamtrain.demo.summary import Summary

PLAIN_S = 5.0  # between two plain lines
JSON_S = 1.0
REFRESH_S = 0.25


class DemoView:
    """Takes what the demo says and how it stands; used as a context manager around it."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._live: Live | None = None
        self._is_live = out.console.is_terminal and not out.as_json and not out.quiet
        self._shown_s = 0.0
        self._scored = False

    def __enter__(self) -> DemoView:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_live()

    def say(self, event: str, text: str, **fields: Any) -> None:
        """One thing that happened."""
        self._end_live()
        if self._out.as_json:
            self._out.line({"event": event, **fields})
        elif not self._out.quiet:
            self._out.console.print(text, highlight=False, markup=False)

    def show(self, standing: Standing) -> None:
        """How it stands now; called often."""
        now_s = time.monotonic()
        every_s = JSON_S if self._out.as_json else REFRESH_S if self._is_live else PLAIN_S
        first = standing.scores and not self._scored
        if now_s - self._shown_s < every_s and not first:
            return
        self._shown_s, self._scored = now_s, self._scored or bool(standing.scores)
        if self._out.as_json:
            self._out.line({"event": "progress", **standing.as_dict()})
        elif self._is_live:
            self._update(standing)
        elif not self._out.quiet:
            self._out.line({}, plain(standing))

    def _update(self, standing: Standing) -> None:
        if self._live is None:
            self._live = Live(console=self._out.console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(screen(standing), refresh=True)

    def _end_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def end(self, summary: Summary) -> None:
        """The result."""
        self._end_live()
        if self._out.as_json:
            self._out.line({"event": "summary", **summary.as_dict()})
        else:
            for part in ending(summary):
                if isinstance(part, str):
                    self._out.console.print(part, markup=False)
                else:
                    self._out.console.print(part, soft_wrap=False, no_wrap=True, overflow="ellipsis")
