"""A snapshot from a file into a job that has none: one run of the job's, whose one publication begins a lineage.

It takes the job as a trainer's start does, and so is fenced, and mute once replaced, by the same rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from streamtrain.build import build_digest
from streamtrain.columns.served import schema_and_model
from streamtrain.compute.model import Model
from streamtrain.compute.snapshot import MODEL_GROUPS, TRAINER_GROUPS, check
from streamtrain.errors import KafkaSettling, Replaced, SnapshotError, StreamtrainError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.transaction import Batch, Transactions
from streamtrain.log import get_logger
from streamtrain.moving.snapshot_file import SnapshotFile
from streamtrain.record_sources.record_source import Gaps
from streamtrain.record_sources.source_kind import source_of
from streamtrain.record_sources.topic_source import records_topic, start_offsets
from streamtrain.run.lease import Lease
from streamtrain.run.lineage import Lineage, imported_lineage, misfits
from streamtrain.run.publication import Assembler
from streamtrain.topics import control
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Imported, Manifest, Position, Positions, Run
from streamtrain.topics.shelves import chunk_keys, manifest_key
from streamtrain.topics.snapshots import placed
from streamtrain.topics.topic import Message, sha256

log = get_logger(__name__)

_STARTING_S = 10.0  # in which a run that has taken an empty job has published its first snapshot, or is gone
_LOOK_S = 0.2

Heard = Callable[[int], Any]
T = TypeVar("T")


class Import:
    """An import of `file` into `job`; `positions` is one of manifest.POSITIONS.

    Rows of a program lie in no topic: for a snapshot of them "keep" means where `records.start` begins. Opens readers
    of the job's topics.
    """

    def __init__(self, job: Job, file: SnapshotFile, positions: str) -> None:
        self._job, self._file, self._positions = job, file, _meant(positions, file, job)
        self._admin = Admin(job.kafka.bootstrap, job.kafka_admin())
        self._wishes = job.topic_wishes()
        self._names = {wish.key: wish.name for wish in self._wishes}
        self._topics = Lease(job.name, job.kafka_consumer(), self._names, self._admin)

    def run(self, on_bytes: Heard = lambda _: 0) -> tuple[Manifest, bytes]:
        """The manifest that has been published, and its digest. Until then there is nothing of it to be seen.

        `on_bytes` hears of every byte twice: when it is looked at, and when it is sent. Raises SnapshotError for a
        damaged file, UserMistake where it does not fit the job, or the job has a snapshot or is being trained, Replaced
        where a trainer has taken the job meanwhile.
        """
        self._check_file(on_bytes)
        self._admin.ensure([wish for wish in self._wishes if wish.owned])
        self._refuse_nonempty("")
        lineage = self._lineage()
        self._wait_for_a_start()
        transactions = Transactions(self._job.kafka_producer(), self._job.name, self._topics)
        taken = transactions.open()
        try:
            self._refuse_nonempty(f"; run {taken.number} has taken the job from it: start its trainer again")
            full, value = self._manifest(taken, lineage)
            messages = _Messages(self._names, self._file, full, value, on_bytes)
            transactions.publish(Batch(messages, f"snapshot {full.version}", messages.digest))
        except Replaced:
            raise
        except StreamtrainError as error:
            transactions.end(self._topics.end(taken, error.exit_code, str(error)))
            raise
        of = full.imported[-1]
        transactions.end(self._topics.end(taken, 0, f"imported snapshot {of.version} of {of.job}"))
        return full, messages.digest

    def _check_file(self, on_bytes: Heard) -> None:
        """It is whole, and of this job's columns, model and optimizer."""
        found, job = self._file.manifest, self._job
        where = f"{self._file.path}: snapshot {found.version} of {found.job}"
        schema_and_model(found)
        if differences := misfits(job, found):
            raise UserMistake(
                f"{where} does not fit the job {job.name}: {'; '.join(differences)}; nothing was imported; take the "
                "columns, transforms, model and optimizer of the job file that it was trained with"
            )
        tensors = self._file.check(on_bytes)
        layout = Model(job.model_spec()).layout.published(job.train.workers)
        try:
            check(layout, tensors, MODEL_GROUPS + TRAINER_GROUPS)
        except SnapshotError as error:
            raise SnapshotError(f"{where} (build {found.build}): {error}; nothing was imported") from None

    def _refuse_nonempty(self, more: str) -> None:
        """"Empty" is a positive answer here: read to the last stable offset, no snapshot, and control names none."""
        last = _settled(self._topics.published_last)
        newest = self._topics.snapshots.newest_manifest()
        self._topics.check_published_last(newest, last)
        if newest is None:
            return
        manifest = newest.manifest
        raise UserMistake(
            f"{self._names['snapshots']}@{newest.offset}: expected no snapshot yet, found version {manifest.version}, "
            f"published by run {manifest.run.number}; nothing was imported; import into a job of another name{more}"
        )

    def _wait_for_a_start(self) -> None:
        """Whoever has taken this empty job and not said its end publishes at once, unless it is gone."""
        until = time.monotonic() + _STARTING_S
        reported_holder: RunEntry | None = None
        while (holder := self._starting()) is not None:
            if reported_holder != holder:
                reported_holder = holder
                log.warning(
                    f"run {holder.run.number} on {holder.host} (process {holder.process}) holds the job and has "
                    f"published nothing: it has {_STARTING_S:.0f} s to do so, then the job is taken from it"
                )
            if time.monotonic() > until:
                return
            time.sleep(_LOOK_S)
            self._refuse_nonempty("")

    def _starting(self) -> RunEntry | None:
        found = _settled(self._topics.control.look)
        holder = found.holder
        if holder is None:
            return None
        end = found.ends.get(holder.run.number)
        return None if end is not None and end.run == holder.run else holder

    def _lineage(self) -> Lineage:
        found, file = self._file.manifest, self._file
        of = Imported(found.job, found.version, file.digest, found.lineage, file.origin.cluster, self._positions)
        return imported_lineage(found, of, *self._begin())

    def _begin(self) -> tuple[Positions, Gaps]:
        """Returns the positions where training continues, and the gaps of the lineage."""
        seen, topic = self._file.manifest.positions, self._names["records"]
        if self._positions != "keep":
            topic_id, partitions = records_topic(self._admin, topic)
            start = "earliest" if self._positions == "beginning" else "latest"
            offsets = start_offsets(start, self._admin, topic, partitions)
            return Positions(topic_id, tuple(Position(offset) for offset in offsets)), ()
        where = f"snapshot {self._file.manifest.version} has read in cluster {self._file.origin.cluster}"
        source_of(seen.topic_id).check_kept(where, seen, topic, self._admin)
        return seen, self._file.manifest.gaps


    def _manifest(self, run: Run, lineage: Lineage) -> tuple[Manifest, bytes]:
        job, of = self._job, self._file.manifest
        layout = Model(job.model_spec()).layout.published(job.train.workers)
        first = Assembler(job, run, layout, of.slot, build_digest()).first(lineage)
        archive = job.publish.archive
        return placed(first, of.model, of.trainer, job.publish.keep, None if archive is None else archive.keep)


def _meant(positions: str, file: SnapshotFile, job: Job) -> str:
    if positions != "keep":
        return positions
    where = f"{file.path}: snapshot {file.manifest.version}"
    return source_of(file.manifest.positions.topic_id).imported_at(where, job.records.start)


def _settled(read: Callable[[], T]) -> T:
    """Returns the result of `read`, for a topic that may be new.

    Retries on KafkaSettling for _STARTING_S seconds, then raises it.
    """
    until = time.monotonic() + _STARTING_S
    while True:
        try:
            return read()
        except KafkaSettling:
            if time.monotonic() > until:
                raise
            time.sleep(_LOOK_S)


class _Messages:
    """The messages of the one transaction. Each chunk is read from the file, and checked again, when its turn comes."""

    def __init__(
        self, names: Mapping[str, str], file: SnapshotFile, manifest: Manifest, value: bytes, heard: Heard
    ) -> None:
        self._file, self._heard, self.digest = file, heard, sha256(value)
        newest = control.Newest(manifest.version, self.digest, manifest.lineage)
        self._first, self._topic = (names["control"], control.newest_message(newest)), names["snapshots"]
        self._keys = chunk_keys(manifest.shelf, len(manifest.model.chunks), len(manifest.trainer.chunks))
        self._last = Message(manifest_key(manifest.shelf), value)

    def __len__(self) -> int:
        return 2 + len(self._keys)

    def __iter__(self) -> Iterator[tuple[str, Message]]:
        yield self._first
        for key, chunk in zip(self._keys, self._file.chunks(), strict=True):
            yield self._topic, Message(key, chunk)
            self._heard(len(chunk))
        yield self._topic, self._last
