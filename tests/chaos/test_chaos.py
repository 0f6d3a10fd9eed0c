"""Chaos: `pytest -m full tests/chaos --chaos-seeds 1-50 --chaos-stalls 100`; a short form of it in every run."""

from __future__ import annotations

import json
import resource
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from long_tables import some

from streamtrain.broker import Broker
from tests.chaos.chaos import HANG_S, Chaos
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
from tests.chaos.trainer import Trainer
from tests.e2e.harness import LiveJob

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


# -- the surroundings: the clock is set, files run out, the broker's disk is full -------------------------------------

HERE = Path(__file__).parent
HOUR_S = 3600


def publishes(trainer: Trainer, rows: int) -> None:
    assert trainer.wait("published", rows=rows, timeout_s=HANG_S), trainer.errors()


@pytest.mark.full
def test_the_clock_is_set_back_and_forward(kafka, tmp_path: Path, kept_build: Callable[..., Path]) -> None:
    def make(folder: Path) -> None:
        source, library = str(HERE / "clock_shim.cpp"), str(folder / "shim.so")
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)

    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    shim = kept_build("clock_shim", ["tests/chaos"], make) / "shim.so"
    clock = tmp_path / "clock"
    clock.write_bytes(struct.pack("<q", 0))
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=1.0)
    trainer = Trainer(job, tmp_path / "trainer.log", LD_PRELOAD=str(shim), CLOCK_SHIM=str(clock))
    rows = 0
    for offset_s in (0, -HOUR_S, 24 * HOUR_S, 0):
        with clock.open("r+b") as file:  # in place: the processes have it mapped
            file.write(struct.pack("<q", offset_s))
        job.produce(1000, seed=rows)
        rows += 1000
        publishes(trainer, rows)
        off_s = job.newest().manifest.created_ms / 1000 - time.time()
        assert abs(off_s - offset_s) < HOUR_S / 2, (off_s, offset_s)  # the shim works
    assert trainer.end() == 0, trainer.errors()
    job.check(rows)


@pytest.mark.full
@pytest.mark.parametrize("limit", [*some([24, 30, 33, 64])])
def test_too_few_files_may_be_open(kafka, tmp_path: Path, limit: int) -> None:
    """The trainer trains, or ends with an error that says so; it neither hangs nor loses a row."""
    job = LiveJob(kafka, tmp_path, produce=1000)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    done = subprocess.run(
        ["prlimit", f"--nofile={limit}:{before[1]}", *Trainer.command(job), "--until-end"],
        capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode in (0, 1, 2, 3), done.stderr[-2000:]
    assert done.returncode == 0 or "Too many open files" in done.stderr, done.stderr[-3000:]
    job.train("--until-end")
    assert job.verified()["rows"]["trained"] == 1000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 96 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("may not mount a file system here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.full
def test_the_brokers_disk_is_full_for_a_while(
    small_disk: Path, private_kafka: Callable[..., Broker], tmp_path: Path
) -> None:
    broker = private_kafka(data=small_disk / "kafka")

    kafka = SimpleNamespace(bootstrap=broker.bootstrap, fresh_name=lambda prefix: prefix)
    job = LiveJob(kafka, tmp_path, publish_interval="50ms")
    trainer = Trainer(job, tmp_path / "trainer.log")
    job.produce(2000)
    publishes(trainer, 2000)
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        file.write(bytes(max(0, shutil.disk_usage(small_disk).free - (1 << 16))))
    trainer.wait("progress", unreachable=True, timeout_s=20)  # where the broker gives up its disk it ends
    filler.unlink()
    broker.kill()
    broker.start()
    job.produce(1000, seed=1)
    publishes(trainer, 3000)
    assert trainer.end() == 0, trainer.errors()
    job.check(3000)
