"""train.affinity on a real job: cores of one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from streamtrain.run.cores import shown, usable_cores
from tests.e2e.harness import LiveJob, Running

GIVEN = {"partitions": 1, "round_interval": "off", "batch_rows": 1_000, "workers": 2}


def live(kafka: Any, folder: Path, train: str = "", **settings: Any) -> LiveJob:
    return LiveJob(kafka, folder, **{**GIVEN, **settings}, averaging_frequency=f"2\n{train}")


def workers_of(running: Running) -> list[psutil.Process]:
    return [process for process in running.children() if process.name().startswith("worker")]


def allowed(process: psutil.Process) -> set[str]:
    """Returns the lists of cores that its threads may use."""
    files = Path(f"/proc/{process.pid}/task").glob("*/status")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return {line.split()[1] for line in lines if line.startswith("Cpus_allowed_list")}


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
@pytest.mark.parametrize(
    "affinity", [pytest.param("auto", marks=pytest.mark.full), "lists", pytest.param("off", marks=pytest.mark.full)]
)
def test_workers_run_on_their_cores(kafka: Any, tmp_path: Path, affinity: str) -> None:
    """A worker that is killed gets them again; the others keep all that there are."""
    first, second, *_ = usable_cores()
    told = f"{second};{first}" if affinity == "lists" else affinity
    own = {"auto": [{str(first)}, {str(second)}], "lists": [{str(second)}, {str(first)}]}
    everything = {shown(usable_cores())}
    threads = 2 if affinity == "lists" else 1
    job = live(kafka, tmp_path, f'threads_per_worker = {threads}\naffinity = "{told}"')
    job.produce(5_000)
    running = job.start("train")
    running.wait_rows(4_000)
    workers = workers_of(running)
    assert [allowed(each) for each in workers] == own.get(affinity, [everything] * 2)
    assert all(each.num_threads() >= threads for each in workers)
    others = [each for each in running.children() if each not in workers]
    assert len(others) == 2 and all(allowed(each) == everything for each in others)
    workers[0].kill()
    running.wait_event("worker_died")
    job.produce(4_000, seed=1)
    running.wait_rows(8_000)
    found = [allowed(each) for each in workers_of(running)]
    assert sorted(found, key=min) == sorted(own.get(affinity, [everything] * 2), key=min)
    assert running.end() == 0


def test_cores_that_are_not_there_end_a_start_with_2(kafka: Any, tmp_path: Path) -> None:
    missing = max(os.cpu_count() or 1, usable_cores()[-1] + 1)
    job = live(kafka, tmp_path, f'affinity = "{usable_cores()[0]};{missing}"')
    for command in (("train", "--until-end"), ("check",)):
        ended = job.here(*command)  # a start is refused before it has a process
        assert ended.returncode == (2 if command[0] == "train" else 1)
        told = f"train.affinity: expected for worker 1 cores that this process may use ({shown(usable_cores())})"
        assert told in " ".join((ended.stdout + ended.stderr).split()), ended.stderr
