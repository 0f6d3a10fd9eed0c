"""Training on rows a program holds: the same ring, rounds and workers as on Kafka, and no broker.

Source, ingest and publisher are threads of the caller; workers are processes.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.clients.records import Records
from streamtrain.clients.scorer import Errors, Scorer
from streamtrain.clients.snapshots import Snapshot, snapshot_of
from streamtrain.columns.plan import native_plan
from streamtrain.columns.served import Served
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from streamtrain.errors import StreamtrainError
from streamtrain.fitting.memory_publisher import MemoryPublisher
from streamtrain.job import Job
from streamtrain.kafka.admin import job_topics
from streamtrain.kafka.chunks import Stored
from streamtrain.kafka.renewing import in_background
from streamtrain.log import get_logger
from streamtrain.run.arena import make_arena, worker_config
from streamtrain.run.dead_letters import Letters
from streamtrain.run.host import Event, Host, HostOptions
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembler, adopt
from streamtrain.run.publishing import Publishing
from streamtrain.run.round_log import Columns, UnpublishedRounds
from streamtrain.topics.manifest import Position, Run, Slot

log = get_logger(__name__)

_PACK_ROWS = 1024  # of a record that carries rows from the program to the decoder
_RECORD_BYTES = 1 << 20
_POLL_S = 0.02
_REASONS_TOLD = 5
_TOPIC_ID = "memory"  # stands in the manifest where a topic's id would


@dataclass(frozen=True)
class Fitted(Snapshot):
    """The snapshot training has ended with. Any thread may call, several at the same time."""

    scorer: Scorer = field(repr=False, compare=False)

    def predict(self, rows: Any, errors: Errors = "raise") -> Any:
        """As LiveModel.predict."""
        return self.scorer.predict(rows, errors)


def fit(
    job: Job | str | Path | Mapping[str, Any],
    rows: Any,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Fitted:
    """Trains a job's model on `rows`, once through, and gives the snapshot, which predicts; no Kafka is needed.

    `job` is a Job, a job file's path, or its tables ({"columns": {...}, "model": {...}, ...}); [kafka] and [topics]
    are not looked at, and rounds close only when they are full and at the end. `rows` are what RecordWriter takes: a
    dict of arrays, a frame, or dicts, also from an iterator, which is never held as a whole. The same rows through
    one partition of a topic give the same bits, where `train.round_interval` is "off".

    `on_event` gets what a trainer tells: {"event": "progress" | "published" | "worker_died" | "ended", ...}, from
    other threads. Raises JobMistakes and UserMistake for a job or rows that are none, CheckFailed where training
    diverges or too many rows cannot be used, and what an iterator raises.
    """
    with _Fit(_without_clock(_job(job)), on_event) as run:
        return run.train(rows)


def _job(job: Job | str | Path | Mapping[str, Any]) -> Job:
    if isinstance(job, Job):
        return job
    return Job.from_tables(job) if isinstance(job, Mapping) else Job.without_kafka(job)


def _without_clock(job: Job) -> Job:
    """Rounds close by rows alone, so that the bits do not depend on how fast a machine is."""
    effective = job.effective()
    return Job.from_effective({**effective, "train": {**effective["train"], "round_interval": "off"}})


def _fitted(stored: Stored) -> Fitted:
    snapshot = snapshot_of(stored)
    scorer = Scorer(Served.of(stored.manifest, stored.digest, stored.model))
    return Fitted(**{each.name: getattr(snapshot, each.name) for each in fields(snapshot)}, scorer=scorer)


class _Fit:
    """One lineage from its fresh start to the end of the rows."""

    def __init__(self, job: Job, on_event: Callable[[Event], None]) -> None:
        self._job = job
        self._on_event = on_event
        self._model = Model(job.model_spec())
        self._host = Host(lambda: make_arena(job, self._model), worker_config(job), HostOptions(), on_event)
        self._arena = self._host.begin()
        self._ring = _native.CoordinatorEnd(self._arena)
        self._publisher = MemoryPublisher()
        self._source = _native.MemorySource()
        self._leaving = threading.Event()

    def __enter__(self) -> _Fit:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the workers, and with them every thread: those look at the word that tells them to leave."""
        self._leaving.set()
        self._source.close()
        self._host.end()

    def train(self, rows: Any) -> Fitted:
        publishing = self._begin()
        self._host.spawn_workers()
        threads: dict[str, Future[Any]] = {
            "source": in_background(self._feed, rows, name="source"),
            "ingest": in_background(self._ingest, name="ingest"),
            "publisher": in_background(publishing.run, name="publisher"),
        }
        try:
            while threads or self._host.children:
                for name, thread in list(threads.items()):
                    if thread.done():
                        thread.result()
                        del threads[name]
                for label, code in self._host.ended():
                    if code:
                        raise StreamtrainError(f"{label} ended with exit code {code}; it has said why")
                time.sleep(_POLL_S)
        except BaseException:
            self._host.tell(_native.Stop.LEAVE)
            raise
        return _fitted(self._publisher.stored())

    def _begin(self) -> Publishing:
        """A fresh lineage, its state in place and published as the first snapshot; READY."""
        job = self._job
        layout = self._model.layout.published(job.train.workers)
        slots = self._arena.slot_layout
        assembler = Assembler(
            job,
            Run(1, uuid.uuid4().hex),
            layout,
            Slot(slots.row_capacity, slots.range_capacity),
            build_digest(),
            {wish.key: wish.name for wish in job_topics(job.name, {})},
        )
        state = view(self._ring.mean_address(0), layout.state_bytes)
        self._model.layout.begin_lineage(self._model.initial_state(job.train.seed), job.train.workers, state)
        lineage = Lineage(uuid.uuid4().hex, job.train.seed, -1, 0, [Position(0)], _TOPIC_ID)
        first = assembler.assemble(lineage, state, -1, Columns.empty(), {})
        lineage = adopt(lineage, first, self._publisher.publish(first, Letters.none()))
        rate = job.optimizer.learning_rate
        self._ring.begin(round=-1, learning_rate=rate, positions=[(0, 0, 0)])
        unpublished = UnpublishedRounds(self._ring)
        publishing = Publishing(job, lineage, self._ring, unpublished, assembler, self._publisher, self._tell)
        self._ring.start()
        return publishing

    def _tell(self, event: str, **fields: object) -> None:
        left_out = fields.get("dead_letters")
        if event == "ended" and isinstance(left_out, Mapping) and left_out:
            told = "; ".join(f"{rows} x {reason}" for reason, rows in list(left_out.items())[:_REASONS_TOLD])
            log.warning(f"{sum(left_out.values())} rows were left out: {told}")
        self._on_event({"event": event, **fields})

    def _feed(self, rows: Any) -> None:
        """The rows as records, as RecordWriter makes them."""
        job = self._job
        records = Records(job.schema, job.records.named, "rows", _PACK_ROWS, _RECORD_BYTES)
        for block in records.blocks(rows, key=None, own_keys=False):
            for record in block:
                while not self._source.put(record.value, 0.5):
                    if self._leaving.is_set():
                        return
        self._source.end()

    def _ingest(self) -> None:
        job = self._job
        ingest = _native.Ingest(
            self._arena,
            self._source,
            job.records.named,
            native_plan(job.schema, self._arena.slot_layout),
            batch_growth=job.train.batch_growth or 0,
        )
        ingest.start()
        while ingest.run(0.5) == _native.IngestStatus.WORKING:
            pass
