"""Publications kept in memory, the newest one whole: what `fit` publishes to."""

from __future__ import annotations

from streamtrain.columns.rejected import Rejected, RejectedRows
from streamtrain.columns.row_plan import cell_path
from streamtrain.fitting.feed import Feed
from streamtrain.fitting.watching import Watching
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled
from streamtrain.run.unpublished_dead_letters import AllLetters, Letters
from streamtrain.topics.chunks import Chunks, Located, Stored
from streamtrain.topics.dead_letters import Causes, DeadRange
from streamtrain.topics.snapshots import Publication

_MAX_REASONS = 5


class MemoryPublisher:
    """A `Publisher`. An offset is the number of the publication's manifest, counted from 0.

    `dead` counts the rows that could not be used, by cause; `left_out` tells of the first; `refused` are those that
    the decoder did not take, each once. `watching` is told of each publication after the first.
    """

    advice = "mend those rows, tell the job what they mean (classes = …, missing = …), or raise that share"
    unreachable = False

    def __init__(self, feed: Feed, watching: Watching) -> None:
        self._feed, self._watching = feed, watching
        self.dead = Causes()
        self.refused = RejectedRows()
        self._reasons: list[str] = []
        self._published = 0
        self._newest: Assembled | None = None

    @property
    def left_out(self) -> str:
        return "; ".join(self._reasons[:_MAX_REASONS])

    def name_of(self, partition: int) -> str:
        return "rows"

    def prepare(self, lineage: Lineage) -> None: ...

    def publish(self, assembled: Assembled, letters: Letters | AllLetters) -> int:
        self._newest = assembled
        self.dead.update(letters.causes)
        for letter in letters if len(self._reasons) < _MAX_REASONS or self.refused.has_room else ():
            for part in letter.rows:
                where = self._feed.where(letter.offset, part.row_from)
                if len(self._reasons) < _MAX_REASONS:
                    self._reasons.append(str(Rejected(where, f"{cell_path(part.path)}: {part.reason}")))
                if letter.until is None:
                    self._refuse(letter.offset, part)
        self._published += 1
        return self._published - 1

    def _refuse(self, record: int, part: DeadRange) -> None:
        for row in range(part.row_from, part.row_to):
            number = self._feed.number(record, row)
            if number is not None and self.refused.has_room:
                place = self._feed.where(record, row)
                self.refused.add(number, Rejected(place, f"{cell_path(part.path)}: {part.reason}"))

    @property
    def awaited(self) -> int | None:
        pace = self._watching.pace
        return None if pace is None else pace.awaited

    def published(self, assembled: Assembled) -> None:
        self._watching.note(assembled, self._feed.pass_records)

    def heed(self, pending: bool) -> None:
        if not pending:
            self._watching.heed(self.stored)

    def stored(self) -> Stored:
        """The newest snapshot, as a reader of its topic would have it."""
        assert self._newest is not None
        return stored_of(self._newest.snapshot, self._published - 1)


def stored_of(snapshot: Publication, offset: int) -> Stored:
    """A snapshot as it is published, as a reader has it."""
    located = Located(snapshot.manifest, snapshot.digest, offset)
    chunks = Chunks(snapshot.manifest, trainer=True)
    for message in snapshot.messages:
        chunks.add(message.key, None if message.value is None else bytes(message.value))
    return chunks.stored(located, "memory")
