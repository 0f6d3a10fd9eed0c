"""Memory of a trainer that waits for records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import wait_for

from tests.bench.bed import Bed, events, train

BAR_MB = 94.0  # it takes 88; how many pages are copied differs by 2 from start to start


def own_mb(pid: int) -> float:
    """Returns the memory of a process and all its children, what they share counted once.

    Without pages of files: programs that use the same libraries share them, so they differ from machine to machine.
    """
    tree = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    lines = [line.split() for each in tree for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()]
    return sum(int(line[1]) for line in lines if line[0] in ("Pss_Anon:", "Pss_Shmem:")) / 1e3


@pytest.mark.full
def test_an_idle_trainer_stays_small(kafka: Any) -> None:
    bed = Bed(kafka.bootstrap)
    bed.fill(20_000)
    running = train(bed.job())
    try:
        next(each for each in events(running) if each["event"] == "published" and each["rows"] == bed.count)
        wait_for(lambda: own_mb(running.pid) < BAR_MB, 60)
    finally:
        running.terminate()
        running.wait(60)
