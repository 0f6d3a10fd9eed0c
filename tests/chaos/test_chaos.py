"""Chaos: `pytest -m full tests/chaos --chaos-seeds 1-50 --chaos-stalls 100`; a short form of it in every run."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    Stage,
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


def chaos(
    private_kafka: Callable[..., Broker], folder: Path, seed: int, faults: list[Fault], timed: bool = True
) -> None:
    broker = private_kafka(data=folder / "kafka", properties=AS_KAFKA_HAS_IT)
    run = Chaos(broker, folder, seed, partitions=(1, 3, 7)[seed % 3], workers=(2, 1, 3)[seed % 3])
    report = run.run(faults)
    print(json.dumps(report))
    slow = [(fault, seconds) for fault, seconds in report["recoveries"]]
    over = [f"{r.fault}: {r.seconds:.1f} s" for r in run.recoveries if r.seconds > r.fault.bar_s * run.slowness]
    assert not (timed and over), f"slower than their bars, times {run.slowness:.1f}: {over}; all: {slow}"


def test_a_short_chaos(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    chaos(private_kafka, tmp_path, 0, SHORT, timed=False)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_seed(private_kafka: Callable[..., Broker], tmp_path: Path, chaos_seed: int) -> None:
    chaos(private_kafka, tmp_path, chaos_seed, schedule(chaos_seed, _FAULTS))


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_stalls(private_kafka: Callable[..., Broker], tmp_path: Path, stall_run: int) -> None:
    chaos(private_kafka, tmp_path, 1000 + stall_run, [BrokerStall(STALL_S)] * _STALLS_A_RUN)


@pytest.mark.full
def test_broker_and_coordinator_die_and_trainers_start_at_once(
    private_kafka: Callable[..., Broker], tmp_path: Path
) -> None:
    class Both(BrokerKill):
        def run(self, stage: Stage) -> None:
            stage.broker.kill()
            Kill("coordinator").run(stage)
            stage.broker.start()

    chaos(private_kafka, tmp_path, 2000, [Both(0.0), TrainersAtOnce(2), Both(0.0)])


@pytest.mark.full
def test_each_process_is_killed_while_rows_stream(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    chaos(private_kafka, tmp_path, 3001, [Kill(process) for process in PROCESSES * 2])
