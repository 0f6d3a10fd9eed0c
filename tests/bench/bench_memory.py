"""Memory of `streamtrain train` with two workers beside the broker: the PSS of all its processes, sampled as it runs.

The rival is the plain Python loop over the same records, one process. Flat: the run's last third against its first.
Then the same with as many records that cannot be decoded.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from collections.abc import Callable

import psutil
from workbench import NETWORKS, Bed, figure, kafka_at, python_loop, train

FIGURES = 3  # lines of a whole run
SMOKE = ["--rows", "20000"]

BAR_MB = 400.0
FLAT_BAR = 1.05
SAMPLE_S = 0.2


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
        self.samples: list[tuple[int, float]] = []
        self._pid, self._done = pid, threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        while not self._done.is_set():
            self.samples.append(pss_mb(self._pid))
            self._done.wait(SAMPLE_S)

    def stop(self) -> list[float]:
        self._done.set()
        self._thread.join()
        whole = max(count for count, _ in self.samples)  # once one has ended, it is no longer the run
        return [pss for count, pss in self.samples if count == whole]


def of_train(bed: Bed) -> list[float]:
    """From the start of ingest to the last row."""
    process = train(bed.job(workers=2, layers=NETWORKS["28-64-64-1"]), "--until-end")
    assert process.stdout is not None
    sampler: Sampler | None = None
    samples: list[float] = []
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "started":
            sampler = Sampler(process.pid)
        elif event["event"] == "progress" and event["rows"] == bed.count and sampler is not None and not samples:
            samples = sampler.stop()
    if sampler is not None and not samples:
        samples = sampler.stop()
    assert process.wait() == 0 and samples
    return samples


def of_flood(bootstrap: str, count: int) -> list[float]:
    """Of a run that meets nothing but bad records, from its start to its end."""
    bed = Bed(bootstrap)
    bed.fill(count, [b"not a record %d" % at for at in range(4096)])
    process = train(bed.job(workers=2), "--until-end", "--set", "records.max_dead_letter_share=1")
    assert process.stdout is not None
    sampler: Sampler | None = None
    dead = 0
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "started":
            sampler = Sampler(process.pid)
        dead += sum(event["dead_letters"].values()) if event["event"] == "published" else 0
    assert sampler is not None
    samples = sampler.stop()
    assert process.wait() == 0 and dead == count, (dead, count)
    return samples


def of_python(bed: Bed, limit: int) -> list[float]:
    process, answer = python_loop(bed, limit, learns=True)
    sampler = Sampler(process.pid)
    assert answer.poll(300)
    samples = sampler.stop()
    process.join(30)
    return samples


def peak(samples: list[float], part: Callable[[int], slice] = lambda count: slice(0, count)) -> float:
    return round(max(samples[part(len(samples))]), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    with kafka_at(options.bootstrap) as bootstrap:
        bed = Bed(bootstrap)
        bed.fill(options.rows)
        ours = of_train(bed)
        rival = of_python(bed, min(bed.count, 300_000))
        figure("memory of train, 2 workers, PSS / Python loop", peak(ours), peak(rival), BAR_MB, "MB, at most")
        first = peak(ours, lambda count: slice(0, max(1, count // 3)))
        last = peak(ours, lambda count: slice(2 * count // 3, count))
        bench = f"memory over {options.rows:,} rows, last third / first third"
        figure(bench, last, first, FLAT_BAR, "MB, ratio at most")
        flood = peak(of_flood(bootstrap, options.rows))
        figure("memory of train on bad records / Python loop", flood, peak(rival), BAR_MB, "MB, at most")


if __name__ == "__main__":
    main()
