"""`pytest -m soak tests/chaos/test_recovery.py`: how long after a kill or a stop of one process until a publication."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamtrain.broker import Broker
from tests.chaos.chaos import HANG_S, Chaos
from tests.chaos.faults import Fault, Kill, Suspend, hold
from tests.chaos.feed import Feed

KILLS = 100
OVER_5_S_AT_MOST = 1
WORST_S = 15.0
AFTER_CONTINUE_S = 3.0
_NEW_RUN = {"coordinator", "ingest", "supervisor"}  # whose death ends the run: what it still tells does not count


def recovery_s(run: Chaos, fault: Kill | Suspend) -> float:
    """From the end of the fault to the next publication, of the next run where the fault has ended this one."""
    fault.run(run)
    over = begun = time.monotonic()
    if isinstance(fault, Kill) and fault.process in _NEW_RUN:
        started = run.trainer.wait("started", after=over, timeout_s=HANG_S)
        assert started is not None, run.trainer.errors()
        begun = started.at
    published = run.trainer.wait("published", after=begun, timeout_s=HANG_S)
    assert published is not None, run.trainer.errors()
    return published.at - over


def recoveries(private_kafka: Callable[..., Broker], folder: Path, faults: list[Kill | Suspend]) -> list[float]:
    run = Chaos(private_kafka(data=folder / "kafka"), folder, seed=1)
    feed = Feed(run.bootstrap, run.job.records, run.partitions, run.seed)
    chance = random.Random(run.seed)
    run.start_trainer()
    feed.start()
    found = []
    try:
        assert run.trainer.wait("published", timeout_s=HANG_S), run.trainer.errors()
        for fault in faults:
            hold(chance.uniform(0.2, 1.5))
            found.append(recovery_s(run, fault))
    finally:
        feed.stop()
    assert run.trainer.end() == 0
    told: list[tuple[Fault, float]] = [(fault, round(seconds, 2)) for fault, seconds in zip(faults, found, strict=True)]
    print(json.dumps([[str(fault), seconds] for fault, seconds in told]))
    return found


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kills_of_our_processes(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    names = ["coordinator", "ingest", "worker", "supervisor"]
    found = recoveries(private_kafka, tmp_path, [Kill(names[at % len(names)]) for at in range(KILLS)])
    assert max(found) <= WORST_S and sum(seconds > 5 for seconds in found) <= OVER_5_S_AT_MOST, sorted(found)[-10:]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_continued_processes(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    """The coordinator is replaced when it is silent for 10 s, so its longer stops end before they are over."""
    names = ["coordinator", "ingest", "worker", "supervisor", "tree"]
    found = recoveries(private_kafka, tmp_path, [Suspend(name, s) for s in (1.0, 5.0, 12.0, 25.0) for name in names])
    assert max(found) <= AFTER_CONTINUE_S, found
