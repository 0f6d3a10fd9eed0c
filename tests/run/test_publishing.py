"""The coordinator's loop over a real ring, with the moments at which a round ends and a publisher of the test's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from streamtrain.errors import CheckFailed, KafkaBroken
from streamtrain.fitting.callbacks import Callbacks
from streamtrain.fitting.feed import Feed
from streamtrain.fitting.memory_publisher import MemoryPublisher
from streamtrain.fitting.watching import Watching
from streamtrain.job import Job
from streamtrain.run.arena import make_arena
from streamtrain.run.dead_letters import Letters
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled, Assembler, adopt
from streamtrain.run.publishing import Ended, Publishing
from streamtrain.run.round_log import Columns, UnpublishedRounds
from streamtrain.topics.manifest import Position, Run, Slot

TABLES: dict[str, Any] = {
    "columns": {"x": {}, "y": {"role": "label"}},
    "records": {"format": "json"},
    "train": {"batch_rows": 4, "batch_growth": "off", "averaging_frequency": 2, "workers": 1, "round_interval": "off"},
    "publish": {"interval": "1h"},
}
GOOD, BAD = b"[1, 1]", b'["much", 1]'


class Rows(Feed):
    def where(self, record: int, row: int) -> str:
        return f"row {row}"


class Kept(MemoryPublisher):
    """Remembers the rounds and the letters it was given."""

    def __init__(self) -> None:
        super().__init__(Rows(Job.from_tables(TABLES)), Watching(Callbacks(()), None, None, None))
        self.rounds: list[int] = []
        self.letters = 0

    def publish(self, assembled: Assembled, letters: Letters) -> int:
        self.rounds.append(assembled.snapshot.manifest.round)
        self.letters += letters.count
        return super().publish(assembled, letters)


class Bed:
    """A lineage at its start; its rounds are trained when the test says so."""

    def __init__(self, publisher: Kept, **train: Any) -> None:
        self.job = Job.from_tables({**TABLES, "train": {**TABLES["train"], **train}})
        self.model = Model(self.job.model_spec())
        self.arena = make_arena(self.job, self.model)
        self.ring = _native.CoordinatorEnd(self.arena)
        self.supervisor = _native.SupervisorEnd(self.arena)
        layout = self.model.layout.published(1)
        state = view(self.ring.mean_address(0), layout.state_bytes)
        self.model.layout.begin_lineage(self.model.initial_state(1), 1, state)
        slot = Slot(self.arena.slot_layout.row_capacity, self.arena.slot_layout.range_capacity)
        self.assembler = Assembler(self.job, Run(1, "a" * 32), layout, slot, "build")
        lineage = Lineage("b" * 32, 1, -1, 0, [Position(0)], "topic")
        first = self.assembler.assemble(lineage, state, -1, Columns.empty(), {})
        self.lineage = adopt(lineage, first, publisher.publish(first, Letters.none()))
        self.ring.begin(round=-1, learning_rate=0.1, positions=[(0, 0, 0)])
        self.unpublished = UnpublishedRounds(self.ring)
        self.ring.start()
        self.worker = _native.Worker(self.arena, 0)
        addresses = (self.worker.state_address, self.worker.base_address, self.worker.share_address)
        self.plan = self.model.compile("cpu", self.arena.slot_layout, *addresses)
        self.events: list[tuple[str, dict[str, Any]]] = []

    def ingest(self, records: list[bytes]) -> None:
        """All of them and no more."""
        source = _native.MemorySource()
        plan = native_plan(self.job.schema, self.arena.slot_layout)
        ingest = _native.Ingest(_native.RoundCutter(self.arena), source, "json", plan)
        ingest.start()
        for record in records:
            assert source.put(record, 10)
        source.end()
        assert ingest.run(10) == _native.IngestStatus.ENDED

    def train(self) -> None:
        """The next round, to the copying of its log."""
        before = self.arena.progress()["slots_released"]
        self.worker.run_closed_round(self.plan)
        while self.arena.progress()["slots_released"] == before:
            pass

    def publishing(self, publisher: Any, ring: Any = None) -> Publishing:
        def tell(event: str, **fields: Any) -> None:
            self.events.append((event, fields))

        return Publishing(
            self.job, self.lineage, ring or self.ring, self.unpublished, self.assembler, publisher, tell
        )


class Looked:
    """The ring; the last round is trained as the loop looks at its progress for the n-th time."""

    def __init__(self, bed: Bed, look: int) -> None:
        self._bed, self._left = bed, look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bed.ring, name)

    def progress(self) -> dict[str, int]:
        self._left -= 1
        if self._left == 0:
            self._bed.train()
        return self._bed.ring.progress()


@pytest.mark.parametrize("look", [2, 3, 4, 5])
def test_a_round_that_ends_while_the_loop_looks_is_published(look: int) -> None:
    publisher = Kept()
    bed = Bed(publisher)
    bed.ingest([GOOD] * 8)
    assert bed.publishing(publisher, Looked(bed, look)).run() is Ended.DONE
    assert publisher.rounds == [-1, 0]
    manifest = publisher.stored().manifest
    assert manifest.rows_seen == 8 and manifest.positions.partitions == (Position(8),)
    assert [event for event, _ in bed.events if event != "progress"] == ["published", "ended"]


def test_what_is_told_to_drain_ends_stopped_and_what_is_told_to_leave_leaves() -> None:
    publisher = Kept()
    bed = Bed(publisher)
    bed.ingest([GOOD] * 8)
    bed.train()
    bed.supervisor.tell(_native.Stop.DRAIN)
    assert bed.publishing(publisher).run() is Ended.STOPPED
    bed.supervisor.tell(_native.Stop.LEAVE)
    assert bed.publishing(publisher).run() is Ended.TOLD_TO_LEAVE


def test_dead_letters_go_with_their_rounds_and_make_room() -> None:
    publisher = Kept()
    bed = Bed(publisher)
    bed.ingest([GOOD, BAD] * 4 + [GOOD] * 4)
    bed.train()
    publishing = bed.publishing(publisher)
    assert publishing.run() is Ended.DONE
    assert publisher.letters == 4 and bed.ring.dead_letter_bytes_waiting == 0
    assert publishing.lineage.counts.dead == 4 and publishing.lineage.rows_seen == 8


def test_too_many_dead_letters_end_the_run_once_they_are_published() -> None:
    publisher = Kept()
    bed = Bed(publisher, batch_rows=512)
    bed.ingest([BAD, GOOD] * 1024)
    bed.train()
    with pytest.raises(CheckFailed, match=r'1024 of the last 2048 rows are dead letters.*"much"'):
        bed.publishing(publisher).run()
    assert publisher.letters == 1024


class Refusing(Kept):
    def heed(self, pending: bool) -> None:
        raise KafkaBroken("away")


def test_what_the_publisher_raises_ends_the_loop() -> None:
    publisher = Refusing()
    bed = Bed(publisher)
    with pytest.raises(KafkaBroken, match="away"):
        bed.publishing(publisher).run()


def test_the_state_published_is_the_mean() -> None:
    publisher = Kept()
    bed = Bed(publisher)
    bed.ingest([GOOD] * 8)
    bed.train()
    assert bed.publishing(publisher).run() is Ended.DONE
    buffer, _ = bed.ring.pin_newest()
    mean = view(bed.ring.mean_address(buffer), bed.model.layout.state_bytes)
    weight = next(block for block in bed.model.layout.blocks if block.name == "output.weight")
    raw = mean[weight.offset : weight.offset + 4].tobytes()
    assert raw in publisher.stored().model and np.frombuffer(raw, np.float32)[0] != 0
