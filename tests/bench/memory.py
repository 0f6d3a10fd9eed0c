"""Memory of `streamtrain train` with two workers: the PSS of all its processes beside the broker, as it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import psutil

from tests.bench.bed import NETWORKS, Bed, events, logistic, python_loop, train
from tests.bench.harness import LIMIT, MOST, Line, Run, Sides, bench, once

SAMPLE_S, PYTHON_ROWS = 0.2, 300_000
TWO_WORKERS = 'round_interval = "250ms"\nworkers = 2'
LOOP = "Python loop"


def pss_mb(pid: int) -> tuple[int, float]:
    """(processes, their PSS): the process and all its children; memory they share is counted once."""
    try:
        tree = [process := psutil.Process(pid), *process.children(recursive=True)]
        return len(tree), sum(each.memory_full_info().pss for each in tree) / 1e6
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0, 0.0


class Sampler:
    """Samples a process tree between start() and stop()."""

    def __init__(self, pid: int) -> None:
        self._samples: list[tuple[int, float]] = []
        self._pid, self._done = pid, threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._done.is_set():
            self._samples.append(pss_mb(self._pid))
            self._done.wait(SAMPLE_S)

    def stop(self) -> dict[str, float]:
        """The peaks: of all, and of the first and the last third."""
        self._done.set()
        self._thread.join()
        whole = max(count for count, _ in self._samples)   # once one has ended, it is no longer the run
        found = [pss for count, pss in self._samples if count == whole]
        third = max(1, len(found) // 3)
        return {"all": max(found), "first": max(found[:third]), "last": max(found[2 * len(found) // 3 :])}


def of_train(bed: Bed, *more: str) -> tuple[dict[str, float], int]:
    """(peaks from the start of ingest to the last row or dead letter, dead letters) of a run over all records."""
    process = train(bed.job(train=TWO_WORKERS, model=NETWORKS["28-64-64-1"]), "--until-end", *more)
    return sampled(process.pid, events(process), bed.count)


def sampled(pid: int, seen: Iterable[dict[str, Any]], count: int) -> tuple[dict[str, float], int]:
    sampler: Sampler | None = None
    peaks: dict[str, float] = {}
    dead = 0
    for event in seen:
        if event["event"] == "started":
            sampler = Sampler(pid)
        elif event["event"] == "progress" and event["rows"] == count and sampler and not peaks:
            peaks = sampler.stop()
        dead += sum(event["dead_letters"].values()) if event["event"] == "published" else 0
    assert sampler is not None
    return peaks or sampler.stop(), dead


def of_flood(kafka: str, count: int) -> dict[str, float]:
    """Of a run that meets nothing but bad records."""
    bed = Bed(kafka)
    bed.fill(count, [b"not a record %d" % at for at in range(4096)])
    peaks, dead = of_train(bed, "--set", "records.max_dead_letter_share=1")
    assert dead == count, (dead, count)
    return peaks


def of_python(bed: Bed, limit: int) -> dict[str, float]:
    with python_loop(bed, limit, logistic, True) as (process, answer):
        sampler = Sampler(process.pid)
        assert answer.poll(300)
        return sampler.stop()


@bench(
    "memory",
    [
        Line("train, 2 workers, PSS", "train:all", f"{LOOP}:all", 400.0, LIMIT),
        Line("train, 2 workers, last third / first third", "train:last", "train:first", 1.05, MOST),
        Line("train on bad records", "bad records:all", f"{LOOP}:all", 400.0, LIMIT),
    ],
    once, "MB", {"rows": 20_000}, rows=5_000_000,
)  # fmt: skip
def memory(run: Run) -> Sides:
    """The PSS of all processes of `streamtrain train`, of good records and of as many that cannot be decoded, against
    the plain Python loop over the same records, one process; and whether it is flat."""
    kafka = run.kafka
    bed = Bed(kafka)
    bed.fill(run.rows)
    return {
        "train": lambda: of_train(bed)[0], LOOP: lambda: of_python(bed, min(bed.count, PYTHON_ROWS)),
        "bad records": lambda: of_flood(kafka, run.rows),
    }  # fmt: skip
