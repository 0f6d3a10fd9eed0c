"""One run of `fit`: a lineage from its start to the end of the rows, between two ends in memory.

Source, ingest and publisher are threads of the caller; workers are processes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import Any

from streamtrain import _native, exits
from streamtrain.background import in_background
from streamtrain.build import build_digest
from streamtrain.columns.rejected import RejectedRows, Rejecting
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from streamtrain.errors import CheckFailed, StreamtrainError, UserMistake
from streamtrain.fitting.feed import Feed
from streamtrain.fitting.fit_start import Start, begun
from streamtrain.fitting.memory_publisher import MemoryPublisher
from streamtrain.fitting.watching import Stopped, Watching
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.run.arena import make_arena, worker_config
from streamtrain.run.beginning import publish_first
from streamtrain.run.host import Child, Event, Host, HostOptions, RunOver
from streamtrain.run.publication import Assembler
from streamtrain.run.publishing import Ended, Publishing
from streamtrain.run.ready import round_cutter
from streamtrain.run.round_log import UnpublishedRounds
from streamtrain.schemas import bare_format
from streamtrain.topics import manifest
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import Run, Slot
from streamtrain.topics.topic import sha256

log = get_logger("streamtrain.fit")

_POLL_S = 0.02
_INGEST_S = 0.5  # one native call
_END_S = 10.0  # for threads to end; only what `on_event` calls takes longer than a fraction of it
_MEANING: dict[int, type[StreamtrainError]] = {each.exit_code: each for each in (CheckFailed, UserMistake)}


class MemoryRun:
    """A run in memory, to be used with `with`. Leaving it leaves no process, no shared memory, and no thread but one
    that an iterator of the program holds.
    """

    def __init__(
        self,
        job: Job,
        on_event: Callable[[Event], None],
        watching: Watching,
        rejecting: Rejecting,
        epochs: int = 1,
        start: Start | None = None,
    ) -> None:
        self._job = job
        self._on_event = on_event
        self._watching, self._epochs, self._goes_on_from = watching, epochs, start
        model = Model(job.model_spec(), job.network)
        self._model = model
        self._host = Host(lambda: make_arena(job, model), worker_config(job), HostOptions(), on_event, last_words=True)
        self._feed = Feed(job, rejecting)
        self._publisher = MemoryPublisher(self._feed, watching)
        self._threads: dict[str, Future[None]] = {}
        self._heartbeat: _native.Heartbeat | None = None

    def __enter__(self) -> MemoryRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._feed.leave()
        if self._watching.pace is not None:
            self._watching.pace.leave()
        try:
            self._host.end()
        finally:
            wait([thread for name, thread in self._threads.items() if name != "source"], _END_S)
            self._threads.clear()  # what ended them holds the arena
            if self._heartbeat is not None:
                self._heartbeat.stop()
                self._heartbeat = None

    @property
    def rejected(self) -> RejectedRows:
        """The rows that no record could hold, and those that the job's decoder refused."""
        return self._feed.rejecting.found.merged(self._publisher.refused)

    def train(self, rows: Any) -> tuple[Stored, str]:
        """The snapshot after the last row, or after the round at which a callback has stopped training, and why.

        Raises CheckFailed, UserMistake, and what an iterator or `on_event` raises.
        """
        self._start(rows)
        stopped, is_stopped = "", False
        try:
            self._watch()
        except Stopped as why:
            stopped, is_stopped = str(why), True
        except RunOver as over:
            raise CheckFailed(
                f"{over}; see in the log why, and whether memory is short for train.workers = {self._job.train.workers}"
            ) from None
        stored = self._counted(self._publisher.stored())
        if is_stopped:
            manifest, dead = stored.manifest, self._publisher.dead.rows
            self._tell("ended", version=manifest.version, rows=manifest.rows_seen, dead_letters=dead)
        begun = 0 if self._goes_on_from is None else self._goes_on_from.stored.manifest.rows_seen
        if stored.manifest.rows_seen == begun:
            reason = self._publisher.left_out or "all were skipped"
            raise CheckFailed(
                f"rows: expected some to train on, got none that can be used: {reason}; "
                "mend them, or tell the job what they mean (classes = … of a label, missing = … of any column)"
            )
        return stored, stopped

    def _counted(self, stored: Stored) -> Stored:
        """The same with the rows that no record could hold among its dead rows."""
        counts = stored.manifest.counts
        new_manifest = replace(stored.manifest, counts=counts._replace(dead=counts.dead + self._feed.left_out))
        return replace(stored, manifest=new_manifest, digest=sha256(manifest.encode(new_manifest)))

    def _watch(self) -> None:
        """Until every thread and every worker has ended."""
        while self._threads or self._host.children:
            self._look_at_threads()
            for child, code in self._host.ended():
                self._on_exit(child, code)
            time.sleep(_POLL_S)  # nothing in hand here: what a Ctrl-C interrupts is kept with it

    def _look_at_threads(self) -> None:
        for name in [name for name, thread in self._threads.items() if thread.done()]:
            self._threads.pop(name).result()

    def _on_exit(self, child: Child, code: int) -> None:
        said = child.last_word()
        if code == exits.RUN_OVER:  # it has heard nothing for ten seconds: this program was stopped, and goes on
            self._host.heal(child, code)
        elif code:
            raise _MEANING.get(code, StreamtrainError)(f"{child.label}: {said or f'expected exit code 0, got {code}'}")

    def _start(self, rows: Any) -> None:
        arena = self._host.begin()
        ring = _native.CoordinatorEnd(arena)
        publishing = self._begin(arena, ring)
        if self._watching.pace is not None:
            self._watching.pace.begin(ring, publishing.lineage.round)
        self._heartbeat = _native.Heartbeat(ring)
        ring.start()
        self._host.spawn_workers()
        self._threads["source"] = in_background(self._feed.run, rows, self._epochs, name="source")
        self._threads["ingest"] = in_background(self._ingest, arena, name="ingest")
        self._threads["publisher"] = in_background(_publish, publishing, name="publisher")

    def _begin(self, arena: _native.Arena, ring: _native.CoordinatorEnd) -> Publishing:
        """A new lineage, its state in place and published as the first snapshot."""
        job = self._job
        layout = self._model.layout.published(job.train.workers)
        slot = Slot(arena.slot_layout.row_capacity, arena.slot_layout.range_capacity)
        assembler = Assembler(job, Run(1, uuid.uuid4().hex), layout, slot, build_digest())
        state = view(ring.mean_address(0), layout.state_bytes)
        lineage = begun(job, self._model, layout, state, self._goes_on_from)
        lineage = publish_first(lineage, state, assembler, self._publisher)
        ring.begin(
            round=lineage.round, learning_rate=job.optimizer.learning_rate, seed=lineage.seed,
            rows_seen=lineage.rows_seen, positions=[(0, 0, 0)],
        )  # fmt: skip
        unpublished = UnpublishedRounds(ring)
        return Publishing(job, lineage, ring, unpublished, assembler, self._publisher, self._tell)

    def _ingest(self, arena: _native.Arena) -> None:
        job = self._job
        plan = job.schema.without_message().native_plan(arena.slot_layout)
        cutter = round_cutter(arena, None, job.train.batch_growth, job.rounds.min_batch_rows)
        ingest = _native.Ingest(cutter, self._feed.source, bare_format(job), plan)
        ingest.start()
        status, epoch, pace = _native.IngestStatus.WORKING, 0, self._watching.pace
        while status not in (_native.IngestStatus.ENDED, _native.IngestStatus.LEAVE):
            status = ingest.run(_INGEST_S)
            if status == _native.IngestStatus.ROUND_ENDED and pace is not None:
                epoch += 1
                pace.epoch_ended(epoch, epoch == self._epochs, arena.progress()["rounds_closed"] - 1)
        if status == _native.IngestStatus.LEAVE:
            raise _leave_error("ingest")

    def _tell(self, event: str, **fields: object) -> None:
        left_out = fields.get("dead_letters")
        if event == "ended" and isinstance(left_out, Mapping) and left_out:
            log.warning(f"{sum(left_out.values())} rows were left out, first of all {self._publisher.left_out}")
        self._on_event({"event": event, **fields})


def _publish(publishing: Publishing) -> None:
    if publishing.run() is not Ended.DONE:
        raise _leave_error("publisher")


def _leave_error(what: str) -> StreamtrainError:
    return StreamtrainError(f"{what}: expected to go on to the last row, was told to leave")
