"""The coordinator: fences older runs, loads or creates the snapshot, then publishes what the workers average.

The one writer of snapshots, rounds, dead letters and control. Trains nothing and never waits for a transaction.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.columns.served import schema_and_model
from streamtrain.compute.model import Model
from streamtrain.compute.quality import Quality
from streamtrain.compute.snapshot import load
from streamtrain.compute.state import attach, view, views
from streamtrain.errors import CheckFailed, KafkaBroken, KafkaUnreachable, Replaced, SnapshotError, StreamtrainError
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.chunks import Located, Stored
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.renewing import in_background
from streamtrain.kafka.snapshots import Held
from streamtrain.kafka.transaction import Transactions, replaced
from streamtrain.log import get_logger
from streamtrain.run.dead_letters import Letters, LettersFirst, Reasons, publication_letters, unpublished_reasons
from streamtrain.run.heap import share_one_heap
from streamtrain.run.job_topics import JobTopics, check_published_last
from streamtrain.run.late_offsets import LateOffsets
from streamtrain.run.lineage import (
    Lineage,
    StartFlags,
    check_fit,
    continued,
    fresh_lineage,
    restored_lineage,
    resumed_lineage,
)
from streamtrain.run.publication import Assembled, Publisher, adopt, score_after_averaging
from streamtrain.run.publication_clock import PublicationClock
from streamtrain.run.round_log import Columns, UnpublishedRounds
from streamtrain.run.watch import Watch
from streamtrain.topics.manifest import Positions, Slot

HELP = "publishes snapshots, round log and dead letters in transactions"
log = get_logger(__name__)

_TICK_S = 0.05  # how late the loop may see a finished transaction or the end
_PROGRESS_S = 0.5
_PENDING_S = 60.0  # of a publication, counted while Kafka answers
_WINDOW_ROWS = 10_000  # of the dead letter ceiling
_CEILING_FROM_ROWS = 1_000


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    job: dict[str, Any]
    kafka: dict[str, dict[str, str]]  # consumer, producer
    topics: dict[str, str]  # names by key
    fresh: bool = False
    restore: int | None = None
    accept_gap: bool = False
    max_rows: int | None = None  # to train in this run
    until_rows: int | None = None  # to train in the lineage, for a run that goes on with another's


def run(config: Config) -> int:
    share_one_heap()
    coordinator = Coordinator(config)
    try:
        coordinator.begin()
        code = coordinator.loop()
    except StreamtrainError as error:
        if not isinstance(error, Replaced | KafkaBroken | KafkaUnreachable):
            coordinator.say_end(error.exit_code, str(error))
        raise
    coordinator.say_end(code, coordinator.why_ended)
    return code


def tell(event: str, **fields: object) -> None:
    """One line for the supervisor, which shows it."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Coordinator:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._job = Job.from_effective(config.job)
        self._arena = attach(config.arena)
        self._ring = _native.CoordinatorEnd(self._arena)
        self._model = Model(self._job.model_spec())
        self._layout = self._model.layout.published(self._job.train.workers)
        bootstrap = config.kafka["consumer"]["bootstrap.servers"]
        self._admin = Admin(bootstrap, config.kafka["consumer"])
        self._topics = JobTopics(self._job.name, config.kafka["consumer"], config.topics, self._admin)
        self._snapshots = self._topics.snapshots
        self._transactions = Transactions(config.kafka["producer"], self._job.name, self._topics)
        self._offsets = LateOffsets(config.kafka["consumer"], self._job.name, config.topics["records"])
        self._quality = Quality(self._job.schema.numbers)
        self._reasons = Reasons()  # of the dead letters published
        self._window = [0, 0]  # rows trained and dead since the dead letter window began
        self._pending: tuple[Future[tuple[int, Letters]], Assembled, int] | None = None
        self._failure: Exception | None = None
        self.why_ended = ""

    # -- start ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Fences, decides where to start, puts parameters and positions in place and sets READY."""
        run = self._transactions.open()
        self._publisher = Publisher(self._job, run, self._layout, self._slot(), build_digest(), self._config.topics)
        start = view(self._arena.mean_address(0), self._layout.state_bytes)
        self._lineage = self._load(StartFlags(self._config.fresh, self._config.restore, self._config.accept_gap), start)
        self._quality.begin(views(self._layout, start))
        positions = [(partition, at.offset, at.row) for partition, at in enumerate(self._lineage.positions)]
        self._ring.begin(
            round=self._lineage.round,
            seed=self._lineage.seed,
            learning_rate=self._job.optimizer.learning_rate,
            rows_seen=self._lineage.rows_seen,
            row_bound=self._row_bound(),
            positions=positions,
        )
        self._log_thread = _native.RoundLogThread(self._ring)
        self._log_thread.start()
        self._unpublished = UnpublishedRounds(self._log_thread)
        control = ControlTopic(self._config.kafka["consumer"], self._config.topics["control"])  # nobody else uses it
        self._watch = Watch(run, control.look)
        self._ring.start()

    def _row_bound(self) -> int:
        if self._config.until_rows is not None:
            return max(0, self._config.until_rows - self._lineage.rows_seen)
        return -1 if self._config.max_rows is None else self._config.max_rows

    def _slot(self) -> Slot:
        layout = self._arena.slot_layout
        return Slot(layout.row_capacity, layout.range_capacity)

    def _load(self, flags: StartFlags, start: np.ndarray[Any, np.dtype[np.uint8]]) -> Lineage:
        waited = self._transactions.answered
        last = waited(self._topics.published_last)
        try:
            known = waited(self._snapshots.newest_manifest)
            check_published_last(self._snapshots.name, known, last)
            newest = None if known is None or flags.restore is not None else waited(lambda: self._whole(known))
        except SnapshotError as error:
            if not flags.fresh:
                raise SnapshotError(f"{error}; nothing was trained; start over with --fresh") from None
            log.warning(f"{error}; passed over for a new lineage")
            return self._begin_lineage(waited(self._snapshots.salvage).above(last.version if last else 0), start)
        if flags.restore is not None:
            return self._restore(flags, known, start)
        if known is None or newest is None:
            return self._begin_lineage(Held(), start)
        if flags.fresh:
            return self._begin_lineage(Held.of(known), start)
        check_fit(self._job, newest.manifest)
        lineage = waited(lambda: resumed_lineage(self._job, self._admin, known, flags.accept_gap))
        load(self._layout, start, newest.model, newest.trainer)
        self._tell_started(lineage, rows=lineage.rows_seen)
        return lineage

    def _whole(self, located: Located) -> Stored:
        """SnapshotError unless every chunk is there and the manifest holds columns and a model."""
        schema_and_model(located.manifest)
        return self._snapshots.load(located, trainer=True)

    def _begin_lineage(self, held: Held, start: np.ndarray[Any, np.dtype[np.uint8]]) -> Lineage:
        lineage = self._transactions.answered(lambda: fresh_lineage(self._job, self._admin, held))
        initial = self._model.initial_state(lineage.seed)
        self._model.layout.begin_lineage(initial, self._job.train.workers, start)
        lineage = self._publish_first(lineage, start)
        self._tell_started(lineage)
        return lineage

    def _restore(
        self, flags: StartFlags, newest: Located | None, start: np.ndarray[Any, np.dtype[np.uint8]]
    ) -> Lineage:
        """Needs the newest snapshot's manifest only: its parameters may be damaged."""
        version, waited = flags.restore or 0, self._transactions.answered
        wanted = waited(lambda: self._snapshots.version(version))  # refuses what the topic does not hold
        assert newest is not None
        schema_and_model(wanted.manifest)
        check_fit(self._job, wanted.manifest)
        located = Located(wanted.manifest, wanted.digest, wanted.offset)
        lineage = waited(lambda: restored_lineage(self._job, self._admin, newest, located, flags.accept_gap))
        try:
            waited(lambda: self._whole(newest))
        except SnapshotError as error:
            log.warning(f"{error}; its positions are gone on from, it is not kept")
            lineage.kept = newest.manifest.kept
        load(self._layout, start, wanted.model, wanted.trainer)
        lineage = self._publish_first(lineage, start)
        self._tell_started(lineage, rows=lineage.rows_seen, restored=version)
        return lineage

    def _tell_started(self, lineage: Lineage, **resumed: int) -> None:
        """The supervisor shows it; the log has it with -v."""
        tell("started", resumed=bool(resumed), version=lineage.version, run=self._publisher.run.number, **resumed)
        log.debug("started", version=lineage.version, lineage=lineage.id, seed=lineage.seed, **resumed)

    def _publish_first(self, lineage: Lineage, start: np.ndarray[Any, np.dtype[np.uint8]]) -> Lineage:
        assembled = self._publisher.assemble(lineage, start, lineage.round, Columns.empty(), lineage.metrics)
        return adopt(lineage, assembled, self._commit(assembled)[0])

    # -- loop -----------------------------------------------------------------------------------------------------

    def loop(self) -> int:
        """Gathers, publishes and beats until ingest has ended and everything is published, or it is to leave."""
        clock = PublicationClock(
            self._ring, self._job.publish.interval_s, self._job.train.round_interval_s is not None
        )
        next_progress = 0.0
        while True:
            self._ring.beat()
            progress = self._arena.progress()
            ended = progress["ingest_ended"] and self._everything_gathered()
            self._gather()  # after the look at the end: what came in between is published too
            self._finish_pending()
            self._heed_watch()
            if self._pending is None and self._ring.stop() == _native.Stop.LEAVE:
                return self._leave()
            waiting = self._unpublished.last_round >= 0
            due = progress["held"] or ended or self._failure
            if self._pending is None and waiting and (due or clock.wait(0)):
                clock.begun()
                self._begin_publication()
            if (now := time.monotonic()) >= next_progress:
                next_progress = now + _PROGRESS_S
                self._progress()
            if self._pending is None and not waiting and (ended or self._failure):
                return self._end()
            self._sleep(clock)

    def _heed_watch(self) -> None:
        """Leaves the job to a newer run, to a new one what this one does not get published, and a Kafka that cannot be
        reached for want of files."""
        if self._watch.replaced_by is not None:
            tell("replaced")
            raise replaced(self._watch.replaced_by)
        if self._watch.no_more_files is not None:
            raise self._watch.no_more_files
        if self._pending is None:
            self._pending_from_s = self._watch.answered_s
        elif self._watch.answered_s - self._pending_from_s > _PENDING_S:
            raise KafkaBroken(f"a publication is pending for {_PENDING_S:.0f} s while Kafka answers; a new run")

    def _sleep(self, clock: PublicationClock) -> None:
        if self._pending is not None:
            wait([self._pending[0]], _TICK_S / 5)
        elif self._unpublished.last_round < 0:
            self._ring.wait_round(self._unpublished.gathered_round + 1, _TICK_S)  # its log follows at once
        else:
            clock.wait(_TICK_S)

    def _everything_gathered(self) -> bool:
        progress = self._arena.progress()
        return bool(
            progress["finished_round"] >= progress["final_round"]
            and progress["slots_released"] == progress["slots_filled"]
        )

    def _gather(self) -> None:
        columns = self._unpublished.gather()
        if len(columns.slots):
            self._window[0] += int(columns.slots["trained"].sum(dtype=np.int64))
            self._window[1] += int(columns.slots["dead"].sum(dtype=np.int64))
            self._check_ceiling()
        too_much = self._unpublished_bytes() > self._job.publish.pending_bytes
        self._ring.hold(too_much or self._failure is not None)

    def _unpublished_bytes(self) -> int:
        return self._unpublished.nbytes + self._ring.dead_letter_bytes_waiting

    def _check_ceiling(self) -> None:
        trained, dead = self._window
        rows = trained + dead
        if rows < _CEILING_FROM_ROWS:
            return
        limit = self._job.records.max_dead_letter_share
        if dead > limit * rows and self._failure is None:
            found = unpublished_reasons(self._ring, self._unpublished.gathered_round)
            found.update(self._reasons)
            self._failure = CheckFailed(
                f"{self._config.topics['records']}: {dead} of the last {rows} rows are dead letters, "
                f"records.max_dead_letter_share allows {limit:g}: {found.told()}; "
                "look at them with 'streamtrain read JOB dead-letters --from-beginning'"
            )
        if rows >= _WINDOW_ROWS:
            self._window = [0, 0]

    def _begin_publication(self) -> None:
        buffer, last_round = self._ring.pin_newest()
        checked = in_background(self._check_topic_id, name="topic id")  # all that is published has been read by now
        state = view(self._arena.mean_address(buffer), self._layout.state_bytes)
        columns = self._take_up_to(last_round)
        metrics, progress = self._quality.look(views(self._layout, state)), self._arena.progress()
        if self._job.train.report_score_after_averaging:
            metrics["after_averaging"] = score_after_averaging(progress)
        deaths = progress["worker_deaths"]
        assembled = self._publisher.assemble(self._lineage, state, last_round, columns, metrics, deaths)
        self._ring.unpin()
        committed = in_background(self._commit, assembled, checked, name="publish")
        self._pending = (committed, assembled, time.monotonic_ns())

    def _take_up_to(self, last_round: int) -> Columns:
        while self._unpublished.last_round < last_round:  # averaged, but its log is still on its way
            self._gather()
        return self._unpublished.take(last_round)

    def _commit(self, assembled: Assembled, checked: Future[None] | None = None) -> tuple[int, Letters]:
        """In the publishing thread: the manifest's offset, once it is committed, and the dead letters with it."""
        records, last_round = self._config.topics["records"], assembled.snapshot.manifest.round
        dead = publication_letters(self._ring, assembled.columns, last_round, records, self._publisher.run.number)
        messages = LettersFirst(dead, self._config.topics["dead_letters"], assembled.batch.messages)
        batch = replace(assembled.batch, messages=messages)
        if checked is not None:
            batch = replace(batch, check=checked.result)
        return self._transactions.publish(batch), dead

    def _check_topic_id(self) -> None:
        """Nothing read from a topic of another id is published: the start's check names the gap."""
        lineage = self._lineage
        topic = self._config.topics["records"]
        found = self._transactions.answered(lambda: self._admin.topic_ids([topic])[topic])
        if found != lineage.topic_id:
            seen = Positions(lineage.topic_id, tuple(lineage.positions))
            self._transactions.answered(lambda: continued(self._job, self._admin, lineage.version, seen))

    def _finish_pending(self) -> None:
        if self._pending is None or not self._pending[0].done():
            return
        future, assembled, began_ns = self._pending
        self._pending = None
        offset, dead = future.result()
        self._ring.release_dead_letters(len(dead.ring), dead.entries)
        self._reasons.update(dead.reasons)
        self._lineage = adopt(self._lineage, assembled, offset)
        self._offsets.commit([position.offset for position in assembled.positions])
        manifest = assembled.snapshot.manifest
        newest = self._unpublished.newest_timestamp_ms
        tell(
            "published",
            version=manifest.version,
            digest=assembled.snapshot.digest.hex(),
            round=manifest.round,
            rows=manifest.rows_seen,
            bytes=dead.bytes + sum(len(message.value or b"") for _, message in assembled.batch.messages),
            transaction_s=(time.monotonic_ns() - began_ns) / 1e9,
            event_age_s=None if newest < 0 else max(0.0, time.time() - newest / 1000),
            metrics=dict(manifest.metrics),
            dead_letters=dict(dead.reasons.rows.most_common(20)),
            positions=[list(position) for position in assembled.positions],
        )

    def _progress(self) -> None:
        progress = self._arena.progress()
        tell(
            "progress",
            unreachable=self._transactions.unreachable or self._watch.unreachable,
            unpublished_bytes=self._unpublished_bytes(),
            **progress,
        )

    def say_end(self, exit_code: int, reason: str) -> None:
        """Writes to control how this run ends, unless a publication is still on its way."""
        run = self._transactions.run
        if run is not None and self._pending is None:
            self._transactions.end(self._topics.end(run, exit_code, reason))

    def _end(self) -> int:
        dead = dict(self._reasons.rows)
        tell("ended", version=self._lineage.version, rows=self._lineage.rows_seen, dead_letters=dead)
        if self._failure is not None:
            raise self._failure
        self.why_ended = "stopped" if self._ring.stop() else "the end of what was asked for"
        return 0

    def _leave(self) -> int:
        """The supervisor ends the run, and has said why."""
        word = json.loads(sys.stdin.readline())
        self.why_ended = word["reason"]
        return int(word["exit_code"])
