"""`pytest -m full tests/chaos/test_recovery.py`: how long after a kill or a stop of one process until a publication.

Seconds are those of an idle machine: divided by how much longer the first start takes here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
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


def recoveries(private_kafka: Callable[..., Broker], folder: Path, faults: Sequence[Fault]) -> list[float]:
    run = Chaos(private_kafka(data=folder / "kafka"), folder, seed=1)
    feed = Feed(run.bootstrap, run.job.records, run.partitions, run.seed)
    chance = random.Random(run.seed)
    run.begin()
    feed.start()
    found = []
    try:
        assert run.trainer.wait("published", timeout_s=HANG_S), run.trainer.errors()
        for fault in faults:
            hold(chance.uniform(0.2, 1.5))
            found.append(run.recovery_s(fault))
    finally:
        feed.stop()
    assert run.trainer.end() == 0
    print(json.dumps([[str(fault), round(seconds, 2)] for fault, seconds in zip(faults, found, strict=True)]))
    return [seconds / run.slowness for seconds in found]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_kills_of_our_processes(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    names = ["coordinator", "ingest", "worker", "supervisor"]
    found = recoveries(private_kafka, tmp_path, [Kill(names[at % len(names)]) for at in range(KILLS)])
    assert max(found) <= WORST_S and sum(seconds > 5 for seconds in found) <= OVER_5_S_AT_MOST, sorted(found)[-10:]


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stops_s", [(1.0, 5.0, 12.0), (25.0,)], ids=["shorter", "longest"])
def test_continued_processes(
    private_kafka: Callable[..., Broker], tmp_path: Path, stops_s: tuple[float, ...]
) -> None:
    """The coordinator is replaced when it is silent for 10 s, so its longer stops end before they are over."""
    names = ["coordinator", "ingest", "worker", "supervisor", "tree"]
    found = recoveries(private_kafka, tmp_path, [Suspend(name, s) for s in stops_s for name in names])
    assert max(found) <= AFTER_CONTINUE_S, found
