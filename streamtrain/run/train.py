"""The supervisor: makes the arena, spawns all children, heals a worker's death, restarts a broken run.

Runs in the command's own process. Touches no record, parameter or transaction.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.errors import KafkaUnreachable
from streamtrain.failpoints import for_life
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin, job_topics
from streamtrain.log import get_logger
from streamtrain.run import exits
from streamtrain.run.back_off import BackOff
from streamtrain.run.lineage import records_topic

HELP = "starts and watches the processes of a job"
log = get_logger(__name__)

Event = dict[str, Any]
_RANGES_PER_SLOT = 512  # a slot with more changes of partition is published before it is full
_POLL_S = 0.05
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT}
_CRASHES_TO_REJECT = 3
_OTHER_DEATHS = 10
_DRAIN_S = 30.0
_LAST_WORD_S = 10.0  # for the coordinator to write to control why the run ends
_SOON_S = 1.0  # the same, where the next run or the user waits


@dataclass(frozen=True)
class TrainOptions:
    """What `streamtrain train` adds to the job."""

    max_rows: int | None = None
    until_end: bool = False
    fresh: bool = False
    restore: int | None = None
    accept_gap: bool = False
    isa: str = "auto"
    backend_priorities: Mapping[str, int] = field(default_factory=dict)  # in place of the backends' own
    failpoints: str = ""
    logging: Mapping[str, str] = field(default_factory=dict)  # level and format


class Stop:
    """Set by signals: the first asks to drain, the second to end at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.interrupted = False

    def install(self) -> None:
        """Takes SIGINT and SIGTERM of the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: object) -> None:
        self.asked += 1
        self.interrupted = number == signal.SIGINT

    def comes_within(self, seconds: float) -> bool:
        """Waits so long; true at once when a signal has come or comes."""
        until = time.monotonic() + seconds
        while not self.asked and time.monotonic() < until:
            time.sleep(_POLL_S)
        return self.asked > 0


@dataclass
class _Child:
    label: str
    process: subprocess.Popen[str]


class _Ended(Exception):
    """The run is over with an exit code; None asks for a new run."""

    def __init__(self, code: int | None, reason: str, is_error: bool = False, is_told: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.is_error = is_error
        self.is_told = is_told  # by the child itself, with the cause


def train(job: Job, options: TrainOptions, on_event: Callable[[Event], None], stop: Stop) -> int:
    """Trains until the bound, a stop or an error; gives the exit code. `on_event` gets what the coordinator tells."""
    supervisor = Supervisor(job, options, on_event, stop)
    return supervisor.run()


class Supervisor:
    def __init__(self, job: Job, options: TrainOptions, on_event: Callable[[Event], None], stop: Stop) -> None:
        self._job = job
        self._options = options
        self._on_event = on_event
        self._stop = stop
        self._topics = {wish.key: wish.name for wish in self._wishes()}
        self._events: queue.Queue[Event] = queue.Queue()
        self._reader: threading.Thread | None = None  # of the coordinator's events
        self._children: list[_Child] = []
        self._crashes: Counter[int] = Counter()  # by slot
        self._other_deaths: Counter[tuple[int, int]] = Counter()  # by round and slot
        self._started = self._running = self._published = False  # a run ever, this run, a publication of this run
        self._unreachable = False  # Kafka, by the coordinator's account
        self._until_rows: int | None = None
        self._spawned: set[str] = set()

    def _wishes(self) -> list[Any]:
        settings = {key: value.model_dump(exclude_none=True) for key, value in self._job.file.topics.items()}
        return job_topics(self._job.name, settings)

    # -- life of the whole ----------------------------------------------------------------------------------------

    def run(self) -> int:
        self._prepare()
        back_off = BackOff()
        while True:
            began = time.monotonic()
            try:
                self._spawn_all()
                self._watch()
            except _Ended as ended:
                self._let_say_why(ended)
                self._end_children()
                if ended.code is not None:
                    if ended.code not in (0, 130):
                        (log.debug if ended.is_told else log.error)(str(ended))
                    return ended.code
                pause_s = back_off.pause_s(self._published, time.monotonic() - began, ended.is_error)
                if pause_s is None:
                    log.error(f"{ended}; so ended {back_off.errors} runs one after the other")
                    return 1
                log.warning(f"{ended}; a new run follows", pause_s=pause_s)
                self._on_event({"event": "restarting", "reason": str(ended), "pause_s": pause_s})
                if self._stop.comes_within(pause_s):
                    log.warning("stopped between two runs; what is not published is trained by the next start")
                    return 130 if self._stop.interrupted else 0
            except BaseException:
                self._end_children()
                raise

    def _prepare(self) -> None:
        bootstrap = self._job.kafka_admin()["bootstrap.servers"]
        admin = Admin(bootstrap, self._job.kafka_admin())
        admin.ensure([wish for wish in self._wishes() if wish.owned])
        topic = self._topics["records"]
        _, partitions = records_topic(admin, topic)
        self._end_offsets = (
            [[p, at] for p, at in enumerate(admin.last_stable(topic, partitions))] if self._options.until_end else []
        )
        self._model = Model(self._job.model_spec())
        train = self._job.train
        self._slot_layout = _native.SlotLayout.make(train.batch_rows, _RANGES_PER_SLOT, self._job.schema.block_specs())

    def _spawn_all(self) -> None:
        train = self._job.train
        self._arena = _native.Arena.create(
            workers=train.workers,
            averaging_frequency=train.averaging_frequency,
            slot_count=train.prefetch_buffer,
            slot_layout=self._slot_layout,
            state_layout=self._model.layout,
        )
        self._ring = _native.SupervisorEnd(self._arena)
        self._running = self._published = False
        self._crashes.clear()
        self._other_deaths.clear()
        self._children = [self._spawn("coordinator", "coordinator", self._coordinator_config())]
        self._children.append(self._spawn("ingest", "ingest", self._ingest_config()))
        self._children += [self._spawn_worker(worker) for worker in range(train.workers)]

    def _coordinator_config(self) -> dict[str, Any]:
        first = not self._started
        return {
            "arena": self._arena.descriptor,
            "job": self._job.effective(),
            "kafka": {"consumer": self._job.kafka_consumer(), "producer": self._job.kafka_producer()},
            "topics": self._topics,
            "fresh": self._options.fresh and first,
            "restore": self._options.restore if first else None,
            "accept_gap": self._options.accept_gap and first,
            "max_rows": self._options.max_rows,
            "until_rows": self._until_rows,
        }

    def _ingest_config(self) -> dict[str, Any]:
        return {
            "arena": self._arena.descriptor,
            "kafka": self._job.kafka_consumer(),
            "topic": self._topics["records"],
            "format": self._job.records.format,
            "schema": self._job.schema.to_dict(),
            "round_interval_s": self._job.train.round_interval_s,
            "batch_growth": self._job.train.batch_growth,
            "until_end": self._options.until_end,
            "end_offsets": self._end_offsets,
        }

    def _spawn_worker(self, worker: int) -> _Child:
        config = {
            "arena": self._arena.descriptor,
            "worker": worker,
            "model": self._job.model_spec(),
            "backend": self._job.train.backend,
            "backend_priorities": dict(self._options.backend_priorities),
            "isa": self._options.isa,
            "score_means": self._job.train.report_score_after_averaging,
        }
        return self._spawn("worker", f"worker-{worker}", config)

    def _spawn(self, process: str, label: str, config: Mapping[str, Any]) -> _Child:
        document = {
            "process": process,
            "label": label,
            "parent": os.getpid(),
            "logging": dict(self._options.logging),
            "failpoints": for_life(self._options.failpoints, label not in self._spawned),
            "config": config,
        }
        self._spawned.add(label)
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "streamtrain.run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if process == "coordinator" else subprocess.DEVNULL,
            pass_fds=(self._arena.descriptor,),
            process_group=0,  # a Ctrl-C of the terminal is the supervisor's alone
            text=True,
        )
        assert child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of one that has died already: it says why itself
            child.stdin.write(json.dumps(document) + "\n")
            child.stdin.flush()
            if child.stdout is None:
                child.stdin.close()
        if child.stdout is not None:
            self._reader = threading.Thread(target=self._read_events, args=(child.stdout,), daemon=True)
            self._reader.start()
        return _Child(label, child)

    def _read_events(self, lines: Any) -> None:
        for line in lines:
            try:
                self._events.put(json.loads(line))
            except ValueError:  # the coordinator was killed within a line
                log.debug("unreadable event", line=line[:200])

    def _let_say_why(self, ended: _Ended) -> None:
        """Where the coordinator lives and Kafka answers: tells it why the run ends, and gives it time to write that."""
        coordinator = next((child.process for child in self._children if child.label == "coordinator"), None)
        if coordinator is None or not self._running or self._unreachable:
            return
        assert coordinator.stdin is not None
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            coordinator.stdin.write(json.dumps({"reason": str(ended), "exit_code": ended.code or 1}) + "\n")
            coordinator.stdin.flush()
            self._ring.tell(_native.Stop.LEAVE)
            coordinator.wait(_SOON_S if ended.code is None or self._stop.asked >= 2 else _LAST_WORD_S)

    def _end_children(self) -> None:
        """SIGKILL and wait for every child: the transaction of a dead coordinator is aborted by its successor."""
        if hasattr(self, "_ring"):
            self._ring.tell(_native.Stop.LEAVE)
        for child in self._children:
            if child.process.poll() is None:
                child.process.kill()
        for child in self._children:
            child.process.wait()
        self._children = []
        if self._reader is not None:
            self._reader.join()  # the coordinator is dead: what it has told is all there is
        self._pass_events()

    # -- one run --------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        drained_s: float | None = None
        while True:
            self._pass_events()
            if self._stop.asked and not self._running:
                raise _Ended(130 if self._stop.interrupted else 0, "stopped before it began")
            if self._stop.asked >= 2:
                raise _Ended(130, "stopped at once")
            if self._stop.asked and drained_s is None:
                drained_s = time.monotonic()
                log.info("draining: the open round is averaged and published")
                self._ring.tell(_native.Stop.DRAIN)
            if drained_s is not None and time.monotonic() - drained_s > _DRAIN_S:
                raise _Ended(
                    KafkaUnreachable.exit_code if self._unreachable else 1,
                    f"not drained in {_DRAIN_S:.0f} s; what is not published is trained again by the next start",
                )
            for index, child in enumerate(self._children):
                code = child.process.poll()
                if code is not None:
                    self._on_exit(index, child, code)
            if not self._children:
                raise _Ended(0 if not self._stop.interrupted else 130, "done")
            time.sleep(_POLL_S)

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
            elif event["event"] == "progress":
                self._unreachable = event["unreachable"]
            self._published |= event["event"] == "published"
            self._on_event(event)

    def _on_exit(self, index: int, child: _Child, code: int) -> None:
        if code == 0:
            self._children.remove(child)
            return
        given_up = code == KafkaUnreachable.exit_code and self._started  # only a command's first run may
        if 1 <= code <= 4 and not given_up:
            raise _Ended(code, f"{child.label} ended with exit code {code}", is_told=True)
        if child.label.startswith("worker-") and code != exits.RUN_OVER:
            self._children[index] = self._heal(int(child.label.removeprefix("worker-")), code)
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise _Ended(None, f"{child.label} {how}", is_error=code == exits.UNEXPECTED)

    def _heal(self, worker: int, code: int) -> _Child:
        look = self._ring.worker(worker)
        round_, slot = look.round, look.slot
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        log.warning(
            "worker died, its batches of the round are trained again", worker=worker, how=how, round=round_, slot=slot
        )
        self._on_event({"event": "worker_died", "worker": worker, "how": how, "round": round_, "slot": slot})
        if code < 0 and -code in _CRASHES and slot >= 0:
            self._crashes[slot] += 1
            if self._crashes[slot] == _CRASHES_TO_REJECT:
                log.error("batch rejected: workers died at it three times", slot=slot, how=how)
                self._ring.reject(slot, worker)
        else:
            self._other_deaths[round_, slot] += 1
            if self._other_deaths[round_, slot] >= _OTHER_DEATHS:
                at = "at one batch" if slot >= 0 else f"between the batches of round {round_}"
                raise _Ended(1, f"workers died {_OTHER_DEATHS} times {at} ({how})", is_error=True)
        self._ring.clear_dead(worker)
        return self._spawn_worker(worker)
