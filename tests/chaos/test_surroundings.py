"""The surroundings of the processes go wrong: the clock is set, files run out, the broker's disk is full.

The arena is a memfd, so the size of /dev/shm is of no matter.
"""

from __future__ import annotations

import resource
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from long_tables import some

from streamtrain.broker import Broker
from tests.chaos.chaos import HANG_S
from tests.chaos.trainer import Trainer
from tests.e2e.harness import LiveJob

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
