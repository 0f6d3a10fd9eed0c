"""Publications kept in memory, the newest one whole: what `fit` publishes to."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.columns.row_plan import cell_path
from streamtrain.kafka.chunks import Chunks, Located, Stored
from streamtrain.run.dead_letters import Letters
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled

_ROWS_TOLD = 5


class MemoryPublisher:
    """A `Publisher`. An offset is the number of the publication's manifest, counted from 0.

    `where` tells what people call a row, of its record's number and its own within that; `left_out` tells of the first
    rows that could not be used.
    """

    advice = "mend those rows, tell the job what stands for what is missing (missing = …), or raise that share"
    unreachable = False

    def __init__(self, where: Callable[[int, int], str] = lambda record, row: f"row {row}") -> None:
        self._where = where
        self._told: list[str] = []
        self._published = 0
        self._newest: Assembled | None = None

    @property
    def left_out(self) -> str:
        return "; ".join(self._told[:_ROWS_TOLD])

    def name_of(self, partition: int) -> str:
        return "rows"

    def prepare(self, lineage: Lineage) -> None: ...

    def publish(self, assembled: Assembled, letters: Letters) -> int:
        self._newest = assembled
        for letter in letters if len(self._told) < _ROWS_TOLD else ():
            for part in letter.rows:
                where = f"{self._where(letter.offset, part.row_from)} at {cell_path(part.path)}"
                self._told.append(f"{where}: {part.reason}")
        self._published += 1
        return self._published - 1

    def published(self, assembled: Assembled) -> None: ...

    def heed(self, pending: bool) -> None: ...

    def stored(self) -> Stored:
        """The newest snapshot, as a reader of its topic would have it."""
        assert self._newest is not None
        snapshot = self._newest.snapshot
        located = Located(snapshot.manifest, snapshot.digest, self._published - 1)
        chunks = Chunks(snapshot.manifest, trainer=False)
        for message in snapshot.messages:
            chunks.add(message.key, None if message.value is None else bytes(message.value))
        return chunks.stored(located, "memory")
