"""The beginning of a run: it picks the lineage, puts its state in place, and publishes first if it is new.

Used by the coordinator, after fencing and before READY.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from streamtrain.columns.served import enlarged_state, schema_and_model
from streamtrain.compute.model import Model
from streamtrain.compute.snapshot import load
from streamtrain.errors import OR_FRESH, SnapshotError, StreamtrainError
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.record_sources.record_source import RecordSource
from streamtrain.run.beginning import State, fill_fresh, publish_first
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.lease import Lease
from streamtrain.run.lineage import (
    Lineage,
    StartFlags,
    check_fit,
    fresh_lineage,
    restored_lineage,
    resumed_lineage,
)
from streamtrain.run.publication import Assembler
from streamtrain.run.publishing import Tell
from streamtrain.topics.chunks import Located, Stored, TopicContents

log = get_logger(__name__)


class Found(NamedTuple):
    """A run's lineage, its state in place. `first`: it is new, and published before anything is trained of it.
    `restored`: the version whose parameters it has; `added`: the classes that are new since then."""

    lineage: Lineage
    first: bool = True
    restored: int | None = None
    added: Sequence[str] = ()


class Start:
    """Finds a run's lineage in the job's topics; `state` is mean buffer 0, which find() fills."""

    def __init__(
        self,
        job: Job,
        model: Model,
        record_source: RecordSource,
        topics: Lease,
        publisher: KafkaPublisher,
        assembler: Assembler,
        tell: Tell,
    ) -> None:
        self._job = job
        self._model = model
        self._record_source = record_source
        self._topics = topics
        self._snapshots = topics.snapshots
        self._publisher = publisher
        self._assembler = assembler
        self._tell = tell

    def find(self, flags: StartFlags, state: State) -> Found:
        """The one the newest snapshot is of, or a new one. SnapshotError, UserMistake where neither can be. Publishes
        nothing."""
        waited = self._publisher.answered
        last = waited(self._topics.published_last)
        try:
            known = waited(self._snapshots.newest_manifest)
            self._topics.check_published_last(known, last)
            newest = None if known is None or flags.restore is not None else waited(lambda: self._whole(known))
        except SnapshotError as error:
            if not flags.fresh:
                raise SnapshotError(f"{error}; nothing was trained; {self._next_step()}{OR_FRESH}") from None
            log.warning(f"{error}; passed over for a new lineage")
            return self._fresh(waited(self._snapshots.salvage).above(last.version if last else 0), state)
        if flags.restore is not None:
            return self._restored(flags, known, state)
        if known is None or newest is None:
            return self._fresh(TopicContents(), state)
        if flags.fresh:
            return self._fresh(TopicContents.of(known), state)
        if check_fit(self._job, newest.manifest, flags.add_classes):
            return self._restored(replace(flags, restore=newest.manifest.version), known, state)
        lineage = waited(lambda: resumed_lineage(self._record_source, known, flags.accept_gap))
        load(self._assembler.layout, state, newest.model, newest.trainer)
        return Found(lineage, first=False)

    def _next_step(self) -> str:
        """Names the way that keeps the model where the newest snapshot cannot be gone on from: an older one."""
        try:
            newest = self._snapshots.newest_manifest()
        except StreamtrainError:
            newest = None
        older = [] if newest is None else [entry.version for entry in newest.manifest.kept]
        return f"go on from an older snapshot with --restore {max(older)}; " if older else ""

    def begin(self, found: Found, state: State) -> Lineage:
        """Publishes what was found if it is new, reports the start and returns the lineage."""
        lineage = found.lineage
        if found.first:
            lineage = publish_first(lineage, state, self._assembler, self._publisher)
        resumed = {} if found.first and found.restored is None else {"rows": lineage.rows_seen}
        restored = {} if found.restored is None else {"restored": found.restored}
        self._tell_started(lineage, **resumed, **restored, **({"added": found.added} if found.added else {}))
        return lineage

    def _whole(self, located: Located) -> Stored:
        """SnapshotError unless every chunk is there and the manifest holds columns and a model."""
        schema_and_model(located.manifest)
        return self._snapshots.load(located, trainer=True)

    def _fresh(self, contents: TopicContents, state: State) -> Found:
        lineage = self._publisher.answered(lambda: fresh_lineage(self._job, self._record_source, contents))
        fill_fresh(self._model, lineage.seed, self._job.train.workers, state)
        return Found(lineage)

    def _restored(self, flags: StartFlags, newest: Located | None, state: State) -> Found:
        """Needs the newest snapshot's manifest only: its parameters may be damaged."""
        version, waited = flags.restore or 0, self._publisher.answered
        source = waited(lambda: self._snapshots.version(version))  # refuses what the topic does not hold
        assert newest is not None
        schema_and_model(source.manifest)
        added = check_fit(self._job, source.manifest, flags.add_classes)
        located = Located(source.manifest, source.digest, source.offset)
        lineage = waited(lambda: restored_lineage(self._record_source, newest, located, flags.accept_gap))
        try:
            waited(lambda: self._whole(newest))
        except SnapshotError as error:
            log.warning(f"{error}; its positions are gone on from, it is not kept")
            lineage.kept = newest.manifest.kept
        if added:
            state[:] = enlarged_state(source, self._assembler.layout)
        else:
            load(self._assembler.layout, state, source.model, source.trainer)
        return Found(lineage, restored=version, added=added)

    def _tell_started(self, lineage: Lineage, **resumed: object) -> None:
        """The supervisor shows it; the log has it with -v."""
        run = self._assembler.run.number
        self._tell("started", resumed=bool(resumed), version=lineage.version, run=run, **resumed)
        log.debug("started", version=lineage.version, lineage=lineage.id, seed=lineage.seed, **resumed)
