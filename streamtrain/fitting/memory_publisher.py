"""Publications kept in memory, the newest one whole: what `fit` publishes to."""

from __future__ import annotations

from streamtrain.kafka.chunks import Chunks, Located, Stored
from streamtrain.run.dead_letters import Letters
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled


class MemoryPublisher:
    """A `Publisher`. An offset is the number of the publication's manifest, counted from 0."""

    advice = "mend those rows, tell the job what stands for what is missing (missing = …), or raise that share"
    unreachable = False

    def __init__(self) -> None:
        self._published = 0
        self._newest: Assembled | None = None

    def prepare(self, lineage: Lineage) -> None: ...

    def publish(self, assembled: Assembled, letters: Letters) -> int:
        self._newest = assembled
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
