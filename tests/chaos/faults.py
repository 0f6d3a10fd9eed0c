"""Faults are data: what is done to whom for how long. `schedule` draws a list of them from a seed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import psutil
from waiting import wait_for

from streamtrain.broker import Broker
from tests.chaos.trainer import Trainer

PROCESSES = ("supervisor", "coordinator", "ingest", "worker", "tree")


class Stage(Protocol):
    """What a fault may lay hands on."""

    broker: Broker
    trainer: Trainer

    def start_trainer(self) -> None:
        """A new trainer of the same job takes `trainer`'s place; the old one is left as it is."""

    def started(self) -> None:
        """Returns when `trainer` has taken the job."""


class Fault(Protocol):
    """One thing that goes wrong; when `run` returns it is over and the job has to recover."""

    def run(self, stage: Stage) -> None: ...

    @property
    def bar_s(self) -> float:
        """How long after it the next publication may take on an idle machine."""
        ...

    @property
    def ends_run(self) -> bool:
        """Whether what the run still tells is no recovery: a new one has to start."""
        ...


def hold(seconds: float) -> None:
    """How long a fault lasts is part of it: nothing is waited for."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(left)


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@dataclass(frozen=True)
class Kill:
    """SIGKILL; the command is started again where its supervisor is among the dead."""

    process: str
    bar_s: float = 15.0

    @property
    def ends_run(self) -> bool:
        return self.process != "worker"

    def run(self, stage: Stage) -> None:
        _signal(stage.trainer.member(self.process), signal.SIGKILL)
        if self.process in ("supervisor", "tree"):
            stage.trainer.process.wait(30)
            stage.start_trainer()


@dataclass(frozen=True)
class Suspend:
    """SIGSTOP, then SIGCONT after `seconds`."""

    process: str
    seconds: float
    bar_s: float = 15.0
    ends_run: bool = False

    def run(self, stage: Stage) -> None:
        victims = stage.trainer.member(self.process)
        _signal(victims, signal.SIGSTOP)
        hold(self.seconds)
        _signal(victims, signal.SIGCONT)


@dataclass(frozen=True)
class BrokerStall:
    """The broker is stopped, then continued: its connections stay, its sessions may not."""

    seconds: float
    bar_s: float = 40.0
    ends_run: bool = False

    def run(self, stage: Stage) -> None:
        for pid in stage.broker.pids:
            os.kill(pid, signal.SIGSTOP)
        hold(self.seconds)
        for pid in stage.broker.pids:
            os.kill(pid, signal.SIGCONT)


@dataclass(frozen=True)
class BrokerKill:
    """SIGKILL, down for a while, then the same node on its data."""

    down_s: float
    bar_s: float = 40.0
    ends_run: bool = False

    def run(self, stage: Stage) -> None:
        stage.broker.kill()
        hold(self.down_s)
        stage.broker.start()


@dataclass(frozen=True)
class OtherTrainers:
    """More trainers of the same job, one after the other; each replaces the one before, which ends with 4."""

    count: int
    bar_s: float = 15.0
    ends_run: bool = False  # `started` has waited for the new one

    def run(self, stage: Stage) -> None:
        replaced = []
        for _ in range(self.count):
            replaced.append(stage.trainer)
            stage.start_trainer()
            stage.started()
        for trainer in replaced:
            code = trainer.wait_end(60)
            assert code == 4, f"a replaced trainer ended with {code}, expected 4\n{trainer.errors()}"


@dataclass(frozen=True)
class TrainersAtOnce:
    """The trainer is killed and so many are started at the same moment: one goes on, the others end with 4."""

    count: int
    bar_s: float = 30.0  # each takes the job once, and learns within 2 s that it has lost it
    ends_run: bool = False  # `started` has waited for the new one

    def run(self, stage: Stage) -> None:
        stage.trainer.kill()
        racing = []
        for _ in range(self.count):
            stage.start_trainer()
            racing.append(stage.trainer)
        stage.trainer = the_one_left(racing)
        stage.started()


def the_one_left(racing: Sequence[Trainer], timeout_s: float = 180) -> Trainer:
    """Of trainers of one job the one that goes on, once the others have ended as those replaced do."""
    wait_for(lambda: sum(trainer.running for trainer in racing) <= 1, timeout_s)
    ended = [trainer for trainer in racing if not trainer.running]
    for trainer in ended:
        code = trainer.process.returncode
        assert code == 4, f"a replaced trainer ended with {code}, expected 4\n{trainer.errors()}"
    (left,) = [trainer for trainer in racing if trainer not in ended]
    return left


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
