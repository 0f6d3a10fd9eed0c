"""Windows of scored rows, which close at the end of a round (native/ring/window_ring.h).

Blocks of the state hold the scores at the beginning of the open window; a ring holds those at the ends of closed ones.

Used by the coordinator, and by replay.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamtrain import _native
from streamtrain.compute.builder import Builder
from streamtrain.compute.metrics import by_head, names
from streamtrain.compute.spec import Array
from streamtrain.compute.state import Layout, block_view, view

SCORE, WINDOW = "score.", "window."  # prefixes of a block: of all rows, and of those before the open window
Scores = dict[str, Array]


def build(builder: Builder) -> None:
    """Adds a block of the window for each score block, behind all others.

    It holds the score at the window's start. That of a tally holds the figures at the end of the last closed window.
    """
    for block in [block for block in builder.statistics if block.group == "score"]:
        name = WINDOW + block.name.removeprefix(SCORE)
        if block.rule == "tally":
            builder.statistic(name.removesuffix(_native.DISTINCT) + _native.CURVES, "window", "window", 2)
        else:
            builder.statistic(name, "window", "window", *block.shape, dtype=block.dtype)
    builder.statistic(_native.WINDOWS_CLOSED, "window", "window", 1, dtype="i64")


def most_windows(figures: Iterable[str]) -> int:
    """Windows that a publication may hold; fewer of many heads, as a manifest is one message."""
    return max(1, min(_native.WINDOWS, 8 * _native.WINDOWS // max(1, len(by_head(dict.fromkeys(figures))))))


def window_rows(slots: int, batch_rows: int) -> int:
    """Rows from which on a window closes: four rounds of so many slots at the least. As Arena::window_rows()."""
    return max(_native.WINDOW_ROWS, 4 * slots * batch_rows)


class Windows:
    """The windows that close after `state`, a mean buffer of that layout."""

    def __init__(self, ring: _native.CoordinatorEnd, layout: Layout, state: Array) -> None:
        self._ring = ring
        self._blocks = [block for block in layout.blocks if block.group == "window"]
        self._most = most_windows(names({block.name: block.shape for block in layout.blocks}))
        self.closed = self._count(state)
        ring.allow_windows(self.closed + self._most)

    def take(self, state: Array) -> list[Scores]:
        """Returns the scores at the ends of the windows that have closed since the last call; others may then close."""
        first, self.closed = self.closed, self._count(state)
        taken = [self._scores(number) for number in range(first, self.closed)]
        self._ring.allow_windows(self.closed + self._most)
        return taken

    def _count(self, state: Array) -> int:
        found = (block for block in self._blocks if block.name == _native.WINDOWS_CLOSED)
        return int(next((block_view(block, state, block.offset)[0] for block in found), 0))

    def _scores(self, number: int) -> Scores:
        begin, last = self._blocks[0].offset, self._blocks[-1]
        memory = view(self._ring.window_address(number), last.offset - begin + last.bytes)
        return {
            SCORE + block.name.removeprefix(WINDOW): block_view(block, memory, block.offset - begin).copy()
            for block in self._blocks
            if block.name != _native.WINDOWS_CLOSED
        }
