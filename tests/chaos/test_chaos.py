"""Chaos: `pytest -m full tests/chaos --chaos-seeds 1-50 --chaos-stalls 100`; a short form of it in every run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from streamtrain.broker import Broker
from tests.chaos.chaos import Chaos
from tests.chaos.faults import (
    PROCESSES,
    BrokerKill,
    BrokerStall,
    Fault,
    Kill,
    OtherTrainers,
    Suspend,
    TrainersAtOnce,
    schedule,
)

SHORT: list[Fault] = [Kill("worker"), Kill("coordinator"), Suspend("ingest", 0.5), BrokerKill(0.0), OtherTrainers(1)]
STALL_S = 25.0
AS_KAFKA_HAS_IT = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}  # not as our own
_FAULTS = 6  # of a seed
_STALLS_A_RUN = 3


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.getoption
    if "chaos_seed" in metafunc.fixturenames:
        first, _, last = str(option("--chaos-seeds")).partition("-")
        metafunc.parametrize("chaos_seed", range(int(first), int(last or first) + 1))
    if "stall_run" in metafunc.fixturenames:
        metafunc.parametrize("stall_run", range(-(-int(option("--chaos-stalls")) // _STALLS_A_RUN)))


class BrokerAndCoordinator(BrokerKill):
    def run(self, stage: Chaos) -> None:
        stage.broker.kill()
        Kill("coordinator").run(stage)
        stage.broker.start()


@pytest.fixture
def chaos(private_kafka: Callable[..., Broker], tmp_path: Path) -> Callable[..., None]:
    def checked(seed: int, faults: list[Fault], timed: bool = True) -> None:
        broker = private_kafka(data=tmp_path / "kafka", properties=AS_KAFKA_HAS_IT)
        run = Chaos(broker, tmp_path, seed, partitions=(1, 3, 7)[seed % 3], workers=(2, 1, 3)[seed % 3])
        report = run.run(faults)
        print(json.dumps(report))
        over = [f"{fault}: {s:.1f} s" for fault, s in run.recoveries if s > fault.bar_s * run.slowness]
        assert not (timed and over), f"slower than their bars, times {run.slowness:.1f}: {over}; all: {report}"

    return checked


def test_a_short_chaos(chaos: Callable[..., None]) -> None:
    chaos(0, SHORT, timed=False)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_seed(chaos: Callable[..., None], chaos_seed: int) -> None:
    chaos(chaos_seed, schedule(chaos_seed, _FAULTS))


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_stalls(chaos: Callable[..., None], stall_run: int) -> None:
    chaos(1000 + stall_run, [BrokerStall(STALL_S)] * _STALLS_A_RUN)


@pytest.mark.full
def test_broker_and_coordinator_die_and_trainers_start_at_once(chaos: Callable[..., None]) -> None:
    chaos(2000, [BrokerAndCoordinator(0.0), TrainersAtOnce(2), BrokerAndCoordinator(0.0)])


@pytest.mark.full
def test_each_process_is_killed_while_rows_stream(chaos: Callable[..., None]) -> None:
    chaos(3001, [Kill(process) for process in PROCESSES * 2])


# -- how long after a kill or a stop of one process until a publication -----------------------------------------------

KILLS = 100
OVER_5_S_AT_MOST = 1
WORST_S = 15.0
AFTER_CONTINUE_S = 3.0


def recoveries(private_kafka: Callable[..., Broker], folder: Path, faults: Sequence[Fault]) -> list[float]:
    run = Chaos(private_kafka(data=folder / "kafka"), folder, seed=1)
    run.suffer(faults, (0.2, 1.5))
    assert run.trainer.end() == 0
    print([(str(fault), round(seconds, 2)) for fault, seconds in run.recoveries])
    return [seconds / run.slowness for _, seconds in run.recoveries]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_kills_of_our_processes(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    names = ["coordinator", "ingest", "worker", "supervisor"]
    found = recoveries(private_kafka, tmp_path, [Kill(names[at % len(names)]) for at in range(KILLS)])
    assert max(found) <= WORST_S and sum(seconds > 5 for seconds in found) <= OVER_5_S_AT_MOST, sorted(found)[-10:]


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("stops_s", [(1.0, 5.0, 12.0), (25.0,)], ids=["shorter", "longest"])
def test_continued_processes(private_kafka: Callable[..., Broker], tmp_path: Path, stops_s: tuple[float, ...]) -> None:
    """The coordinator is replaced when it is silent for 10 s, so its longer stops end before they are over."""
    names = ["coordinator", "ingest", "worker", "supervisor", "tree"]
    found = recoveries(private_kafka, tmp_path, [Suspend(name, s) for s in stops_s for name in names])
    assert max(found) <= AFTER_CONTINUE_S, found
