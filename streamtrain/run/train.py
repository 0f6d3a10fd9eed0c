"""The supervisor of a job on Kafka: one run after the other on this host, with Kafka at both ends.

Runs in the command's own process. Touches no record, parameter or transaction.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from streamtrain import _native, exits
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.job.sections import EarlyStopping
from streamtrain.kafka.admin import Admin
from streamtrain.log import get_logger
from streamtrain.record_sources.topic_source import record_source_of
from streamtrain.record_sources.validation_set import named_files
from streamtrain.run.arena import make_arena, worker_config
from streamtrain.run.back_off import BackOff
from streamtrain.run.host import Child, Event, Host, HostOptions, RunOver
from streamtrain.run.many_hosts import ManyHosts

log = get_logger("streamtrain.run.supervisor")  # the user knows one word for what watches a run

_CONTRIBUTOR = "contributor"
_POLL_S = 0.05
_DRAIN_S = 30.0  # without progress
_LAST_WORD_S = 10.0  # for the coordinator to write to control why the run ends
_HAND_OVER_S = 30.0  # at most, until what was trained of former partitions is in a snapshot
_SAY_S = 10.0
_SOON_S = 1.0  # the same, where the next run or the user waits


@dataclass(frozen=True)
class TrainOptions:
    """The options that `streamtrain train` adds to the job."""

    max_rows: int | None = None
    until_end: bool = False
    fresh: bool = False
    restore: int | None = None
    accept_gap: bool = False
    add_classes: Sequence[str] = ()
    files: Sequence[FoundFile] = ()  # in the place of the records topic
    traces: str = ""  # the exporter of spans of publications
    host_id: str = ""  # of a job with many hosts
    host: HostOptions = field(default_factory=HostOptions)

    @property
    def of_one_host(self) -> list[str]:
        """Returns the options given that many hosts cannot have."""
        options = {
            "--max-rows": self.max_rows is not None, "--until-end": self.until_end, "--files": bool(self.files),
            "--accept-gap": self.accept_gap,
        }  # fmt: skip
        return [name for name, is_given in options.items() if is_given]

    @property
    def has_end(self) -> bool:
        return self.until_end or bool(self.files) or self.max_rows is not None


class Interrupts:
    """Set by signals: the first asks to drain, the second to end at once."""

    def __init__(self) -> None:
        self.requests = 0
        self.interrupted = False

    def install(self) -> None:
        """Takes SIGINT and SIGTERM of the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.requests += 1
        self.interrupted = number == signal.SIGINT

    @property
    def code(self) -> int:
        """Returns the exit code of a command that has finished everything it began."""
        return exits.INTERRUPTED if self.interrupted else exits.DONE

    def comes_within(self, seconds: float) -> bool:
        """Waits so long; true at once when a signal has come or comes."""
        until = time.monotonic() + seconds
        while not self.requests and time.monotonic() < until:
            time.sleep(_POLL_S)
        return self.requests > 0


def train(job: Job, options: TrainOptions, on_event: Callable[[Event], None], stop: Interrupts) -> int:
    """Trains until the bound, a stop or an error; gives the exit code. `on_event` gets what the coordinator tells."""
    supervisor = Supervisor(job, options, on_event, stop)
    return supervisor.run()


def _ingest_threads(threads: int | None, most: int) -> int:
    """Returns the job's number of threads, else one for four cores; at most `most`."""
    return min(threads or max(1, len(os.sched_getaffinity(0)) // 4), most)


class Supervisor:
    def __init__(self, job: Job, options: TrainOptions, on_event: Callable[[Event], None], stop: Interrupts) -> None:
        self._job = job
        self._options = options
        self._on_event = on_event
        self._stop = stop
        self._topics = {wish.key: wish.name for wish in job.topic_wishes()}
        self._events: queue.Queue[Event] = queue.Queue()
        self._reader: threading.Thread | None = None  # of the coordinator's events
        worker = {**worker_config(job), "restorable": True}
        self._host = Host(lambda: make_arena(job, self._model, self._ingest_threads), worker, options.host, on_event)
        self._coordinator: Child | None = None  # of this run: it publishes, or contributes
        self._started = self._running = False  # a run ever, this run
        self._publications = 0  # of this run
        self._unreachable = False  # Kafka, by the coordinator's account
        self._until_rows: int | None = None
        self._validation_files: list[FoundFile] = []  # early stopping judges by them
        self._over_early = ""  # why training has ended by itself
        self._many: ManyHosts | None = None
        self._partitions: frozenset[int] = frozenset()  # of this run, where there are many hosts
        self._over = ""  # why this run is, and another begins at the newest snapshot
        self._gained = True  # some of them since the run before
        self._hands_over_s: float | None = None  # since when, as its partitions are others now

    # -- life of the whole ----------------------------------------------------------------------------------------

    def run(self) -> int:
        self._prepare()
        try:
            return self._run_on()
        finally:
            if self._many is not None:
                self._many.close()

    def _run_on(self) -> int:
        """One run after the other."""
        back_off = BackOff()
        while True:
            began = time.monotonic()
            try:
                if self._many is not None:
                    self._stand_by(self._many)
                self._spawn_all()
                self._watch()
            except RunOver as ended:
                self._let_say_why(ended)
                self._end_children()
                if ended.code is not None:
                    if ended.code not in (exits.DONE, exits.INTERRUPTED):
                        (log.debug if ended.is_reported else log.error)(str(ended))
                    return ended.code
                if ended.is_expected and not self._stop.requests:
                    continue
                pause_s = back_off.pause_s(self._publications > 0, time.monotonic() - began, ended.is_error)
                if pause_s is None:
                    log.error(f"{ended}; so ended {back_off.errors} runs one after the other")
                    return exits.FAILED
                log.warning(f"{ended}; a new run follows", pause_s=pause_s)
                self._on_event({"event": "restarting", "reason": str(ended), "pause_s": pause_s})
                if self._stop.comes_within(pause_s):
                    log.warning("stopped between two runs; what is not published is trained by the next start")
                    return self._stop.code
            except BaseException:
                self._end_children()
                raise

    def _prepare(self) -> None:
        if self._job.train.hosts == "many" and (given := self._options.of_one_host):
            raise UserMistake(
                f'{", ".join(given)}: expected train.hosts = "one", got "many"; leave it out, or start one host with '
                "--set train.hosts=one while no other runs"
            )
        early = self._job.train.early_stopping
        if early is not None:
            self._check_ends(early)
            self._validation_files = named_files(self._job)
        bootstrap = self._job.kafka_admin()["bootstrap.servers"]
        admin = Admin(bootstrap, self._job.kafka_admin())
        admin.ensure([wish for wish in self._job.topic_wishes() if wish.owned])
        record_source = record_source_of(self._job, self._job.kafka_consumer(), admin, self._options.files)
        self._intake = record_source.intake(self._options.until_end)
        self._model = Model(self._job.model_spec())
        if self._job.train.hosts == "many":
            self._many = ManyHosts(
                self._job, self._model, self._leader_config(), self._options.host, self._on_event
            )
        bounded = self._options.max_rows is not None
        threads = _ingest_threads(self._job.ingest.threads, self._intake.most_threads)
        self._ingest_threads = 1 if bounded else threads

    def _check_ends(self, early: EarlyStopping) -> None:
        """UserMistake where passes are counted and this one has no end."""
        if early.epochs is not None and not self._options.has_end:
            raise UserMistake(
                "train.early_stopping.epochs: expected a start with an end, --until-end, --files or --max-rows, got "
                "none: a stream without an end has no passes that could be counted; count rows or time, or take it out"
            )

    def _stand_by(self, many: ManyHosts) -> None:
        """Until this host has partitions. RunOver where it is to stop before."""
        says_s = time.monotonic() + _SAY_S
        while not (found := many.look()):
            if self._stop.comes_within(_POLL_S):
                raise RunOver(self._stop.code, "stopped before it began")
            if time.monotonic() > says_s:
                says_s = math.inf
                log.info(f"{self._options.host_id} stands by: other hosts have all partitions")
        self._gained = self._gained or bool(found - self._partitions)
        self._partitions, self._hands_over_s = found, None
        self._on_event({"event": "joined", "host": self._options.host_id, "partitions": sorted(found)})

    def _spawn_all(self) -> None:
        self._host.begin()
        self._running, self._publications, self._over = False, 0, ""
        role, config = "coordinator", self._coordinator_config()
        if self._many is not None:
            role, config = _CONTRIBUTOR, self._contributor_config()
        self._coordinator = self._host.spawn(role, role, config, heard=True)
        self._reader = threading.Thread(target=self._read_events, args=(self._coordinator.process.stdout,), daemon=True)
        self._reader.start()
        self._host.spawn(self._intake.role, "ingest", self._ingest_config())
        self._host.spawn_workers()

    def _coordinator_config(self) -> dict[str, Any]:
        first = not self._started
        return {
            "job": self._job.effective(),
            "module": None if self._job.network is None else self._job.network.to_dict(),
            "kafka": {"consumer": self._job.kafka_consumer(), "producer": self._job.kafka_producer()},
            "topics": self._topics,
            "registry": dict(self._job.registry.properties),
            "fresh": self._options.fresh and first,
            "restore": self._options.restore if first else None,
            "accept_gap": self._options.accept_gap and first,
            "add_classes": [*self._options.add_classes] if first else [],
            "files": [asdict(file) for file in self._options.files],
            "max_rows": self._options.max_rows,
            "until_rows": self._until_rows,
            "has_end": self._options.has_end,
            "held_out": [asdict(file) for file in self._validation_files],
            "traces": self._options.traces,
        }

    def _leader_config(self) -> dict[str, Any]:
        names = ("job", "module", "kafka", "topics", "registry", "fresh", "restore", "add_classes")
        config = {name: value for name, value in self._coordinator_config().items() if name in names}
        return {**config, "host": self._options.host_id}

    def _contributor_config(self) -> dict[str, Any]:
        names = ("job", "module", "kafka", "topics", "registry")
        config = {name: value for name, value in self._coordinator_config().items() if name in names}
        return {**config, "host": self._options.host_id, "partitions": sorted(self._partitions), "gained": self._gained}

    def _ingest_config(self) -> dict[str, Any]:
        return {
            "round_interval_s": None if self._many is not None else self._job.train.round_interval_s,
            "batch_growth": self._job.train.batch_growth,
            "min_batch_rows": self._job.rounds.min_batch_rows,
            "threads": self._ingest_threads,
            **self._intake.config,
            **({} if self._many is None else {"is_share": True}),
        }

    def _read_events(self, lines: Any) -> None:
        for line in lines:
            try:
                self._events.put(json.loads(line))
            except ValueError:  # the coordinator was killed within a line
                log.debug("unreadable event", line=line[:200])

    def _let_say_why(self, ended: RunOver) -> None:
        """Tells the coordinator why the run ends, and gives it time to write that. Does nothing unless the coordinator
        lives and Kafka answers."""
        child = self._coordinator
        if child is None or child not in self._host.children or not self._running or self._unreachable:
            return
        coordinator = child.process
        assert coordinator.stdin is not None
        code = exits.FAILED if ended.code is None else ended.code
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            coordinator.stdin.write(json.dumps({"reason": str(ended), "exit_code": code}) + "\n")
            coordinator.stdin.flush()
            self._host.tell(_native.Stop.LEAVE)
            coordinator.wait(_SOON_S if ended.code is None or self._stop.requests >= 2 else _LAST_WORD_S)

    def _end_children(self) -> None:
        self._host.end()
        if self._reader is not None:
            self._reader.join()  # the coordinator is dead: what it has told is all there is
        self._pass_events()

    # -- one run --------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        drained_s: float | None = None
        before = self._progress()
        while True:
            self._pass_events()
            if self._over_early:
                raise RunOver(exits.DONE, self._over_early)
            if self._stop.requests and not self._running:
                raise RunOver(self._stop.code, "stopped before it began")
            if self._stop.requests >= 2:
                raise RunOver(exits.INTERRUPTED, "stopped at once")
            if self._stop.requests and drained_s is None:
                drained_s = time.monotonic()
                log.info("draining: the open round is averaged and published")
                self._host.tell(_native.Stop.DRAIN)
            if drained_s is not None and (now := self._progress()) != before:
                drained_s, before = time.monotonic(), now
            if drained_s is not None and time.monotonic() - drained_s > _DRAIN_S:
                raise RunOver(
                    exits.UNREACHABLE if self._unreachable else exits.FAILED,
                    f"draining made no progress in {_DRAIN_S:.0f} s; what is not published is trained again by the next"
                    " start",
                )
            if self._many is not None:
                self._hand_over(self._many)
            for child, code in self._host.ended():
                self._on_exit(child.label, code)
            if not self._host.children:
                raise RunOver(self._stop.code, "done")
            time.sleep(_POLL_S)

    def _hand_over(self, many: ManyHosts) -> None:
        """Ends the run where this host has other partitions now: what is trained of them is sent before."""
        now_s = time.monotonic()
        if many.look() != self._partitions and self._hands_over_s is None:
            self._hands_over_s = now_s
            self._host.tell(_native.Stop.DRAIN)
        if self._hands_over_s is not None and now_s - self._hands_over_s > _HAND_OVER_S:
            raise RunOver(None, "what it trained of its former partitions was not sent in time", is_expected=True)

    def _progress(self) -> tuple[int, ...]:
        """Returns what changes while training, averaging or a publication goes on."""
        assert self._host.arena is not None
        progress = self._host.arena.progress()
        done = ("slots_filled", "slots_released", "rounds_closed", "finished_round")
        return (self._publications, *(progress[name] for name in done))

    def _pass_events(self) -> None:
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if event["event"] == "started":
                if not self._started and self._options.max_rows is not None:
                    self._until_rows = event.get("rows", 0) + self._options.max_rows
                self._started = self._running = True
                self._gained = False
                if self._intake.rows is not None:
                    event = {**event, "origin_rows": self._intake.rows}
            elif event["event"] == "progress":
                self._unreachable = event["unreachable"]
            elif event["event"] == "over":
                self._over = event["why"]
            elif event["event"] == "stopped_early":
                self._over_early = event["why"]
            elif event["event"] == "ended" and self._hands_over_s is not None and not self._stop.requests:
                continue  # another run follows
            self._publications += event["event"] == "published"
            self._on_event(event)

    def _on_exit(self, label: str, code: int) -> None:
        if label == _CONTRIBUTOR:
            self._on_contributors_exit(code)
        if code == exits.DONE:
            return
        given_up = code == exits.UNREACHABLE and self._started  # only a command's first run may
        if code in exits.OF_ERRORS and not given_up:
            raise RunOver(code, f"{label} ended with exit code {code}", is_reported=True)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise RunOver(None, f"{label} {how}", is_error=code == exits.UNEXPECTED)

    def _on_contributors_exit(self, code: int) -> None:
        """Ends the run with it: what ingest still holds is trained by others, or by the next run."""
        assert self._reader is not None
        self._reader.join()  # what it has told is all there is
        self._pass_events()
        if code == exits.DONE and (self._stop.requests or self._hands_over_s is None):
            raise RunOver(self._stop.code, "done")
        if code == exits.DONE or self._over:
            raise RunOver(None, self._over or "its partitions are others now", is_expected=True)
