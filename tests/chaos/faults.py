"""Faults are data: what is done to whom for how long. `schedule` draws a list of them from a seed."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import psutil
from waiting import wait_for

from streamtrain.broker import Broker
from tests.chaos.trainer import Trainer

PROCESSES = ("supervisor", "coordinator", "ingest", "worker", "tree")


class Stage(Protocol):
    """The part of a chaos run that a fault may touch."""

    broker: Broker
    trainer: Trainer

    def start_trainer(self) -> None: ...

    def started(self) -> None: ...


class Fault:
    """One thing that goes wrong; when `run` returns it is over and the job has to recover."""

    bar_s: ClassVar[float] = 15.0  # how long after it the next publication may take on an idle machine
    ends_run = False  # what the run still tells is no recovery: a new one has to start

    def run(self, stage: Stage) -> None:
        raise NotImplementedError


def hold(seconds: float) -> None:
    """Sleeps: how long a fault lasts is part of it, and no event ends it."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(left)


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _suspend(processes: Sequence[psutil.Process], seconds: float) -> None:
    _signal(processes, signal.SIGSTOP)
    hold(seconds)
    _signal(processes, signal.SIGCONT)


@dataclass(frozen=True)
class Kill(Fault):
    """SIGKILL; the command is started again where its supervisor is among the dead."""

    process: str

    @property
    def ends_run(self) -> bool:  # type: ignore[override]
        return self.process != "worker"

    def run(self, stage: Stage) -> None:
        _signal(stage.trainer.member(self.process), signal.SIGKILL)
        if self.process in ("supervisor", "tree"):
            stage.trainer.process.wait(30)
            stage.start_trainer()


@dataclass(frozen=True)
class Suspend(Fault):
    """SIGSTOP, then SIGCONT after `seconds`."""

    process: str
    seconds: float

    def run(self, stage: Stage) -> None:
        _suspend(stage.trainer.member(self.process), self.seconds)


@dataclass(frozen=True)
class BrokerStall(Fault):
    """The broker is stopped, then continued: its connections stay, its sessions may not."""

    seconds: float
    bar_s = 40.0

    def run(self, stage: Stage) -> None:
        _suspend([psutil.Process(pid) for pid in stage.broker.pids], self.seconds)


@dataclass(frozen=True)
class BrokerKill(Fault):
    """SIGKILL, down for a while, then the same node on its data."""

    down_s: float
    bar_s = 40.0

    def run(self, stage: Stage) -> None:
        stage.broker.kill()
        hold(self.down_s)
        stage.broker.start()


@dataclass(frozen=True)
class OtherTrainers(Fault):
    """More trainers of the same job, one after the other; each replaces the one before, which ends with 4."""

    count: int

    def run(self, stage: Stage) -> None:
        replaced = []
        for _ in range(self.count):
            replaced.append(stage.trainer)
            stage.start_trainer()
            stage.started()
        check_replaced(replaced)


@dataclass(frozen=True)
class TrainersAtOnce(Fault):
    """The trainer is killed and so many are started at the same moment: one goes on, the others end with 4."""

    count: int
    bar_s = 30.0  # each takes the job once, and learns within 2 s that it has lost it

    def run(self, stage: Stage) -> None:
        stage.trainer.kill()
        racing = []
        for _ in range(self.count):
            stage.start_trainer()
            racing.append(stage.trainer)
        wait_for(lambda: sum(trainer.running for trainer in racing) <= 1, 180)
        ended = [trainer for trainer in racing if not trainer.running]
        (stage.trainer,) = [trainer for trainer in racing if trainer not in ended]
        check_replaced(ended)
        stage.started()


def check_replaced(trainers: Sequence[Trainer]) -> None:
    for trainer in trainers:
        code = trainer.finish(60)
        assert code == 4, f"a replaced trainer ended with {code}, expected 4\n{trainer.errors()}"


def schedule(seed: int, count: int) -> list[Fault]:
    """`count` faults drawn from the seed."""
    chance = random.Random(seed)

    def one() -> Fault:
        draw = chance.random()
        if draw < 0.4:
            return Kill(chance.choice(PROCESSES))
        if draw < 0.6:
            return Suspend(chance.choice(PROCESSES), round(chance.uniform(0.5, 20), 1))
        if draw < 0.75:
            return BrokerStall(round(chance.uniform(5, 60), 1))
        if draw < 0.9:
            return BrokerKill(round(chance.uniform(0, 10), 1))
        return chance.choice((OtherTrainers, TrainersAtOnce))(chance.choice((2, 3)))

    return [one() for _ in range(count)]
