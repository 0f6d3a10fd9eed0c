"""Rows from a program's memory, as `fit` trains them.

Only snapshots in files name this source. Everything else treats it as a topic that is gone.
"""

from __future__ import annotations

from streamtrain.errors import UserMistake
from streamtrain.record_sources.source_kind import SAY_POSITIONS
from streamtrain.record_sources.topic import TopicKind

_BEGINNINGS = {"earliest": "beginning", "latest": "end"}  # of records.start


class _Memory(TopicKind):
    def imported_at(self, where: str, start: str) -> str:
        if start not in _BEGINNINGS:
            raise UserMistake(
                f"{where} is of the rows of a program, which lie in no topic, and records.start is a time ({start}); "
                f"{SAY_POSITIONS}"
            )
        return _BEGINNINGS[start]


SOURCE = _Memory()
