"""The cores that a run's workers get: what this process may use, dealt as the job says. Pins nothing itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.job.affinity import AUTO, core_lists

_GROUPS, _GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def usable_cores() -> list[int]:
    """Returns the cores this process may run on, ascending: sched_getaffinity(2)."""
    return sorted(os.sched_getaffinity(0))


def usable_count(groups: Path = _GROUPS, group: Path = _GROUP) -> int:
    """Returns how many cores the process may keep busy; 1 or more. That is no more than the quota of its control group,
    or of one above, allows (the kernel's cgroup-v2, cpu.max)."""
    count = float(len(os.sched_getaffinity(0)))
    for folder in _folders(groups, group):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            count = count if quota == "max" else min(count, int(quota) / int(period))
        except (OSError, ValueError):  # the root has none
            continue
    return max(1, int(count))


def _folders(groups: Path, group: Path) -> list[Path]:
    """Returns the folders of this process's control group and of those above it; none where they are not known."""
    try:
        lines = group.read_text().splitlines()
    except OSError:
        return []
    found = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if found is None:
        return []
    parts = Path(found).parts
    return [groups.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def cores_of_workers(job: Job) -> list[list[int]]:
    """By worker, those it is to run on; none where each may run on all. UserMistake names cores that are not there."""
    train, usable = job.train, usable_cores()
    if train.affinity == AUTO:
        each = train.threads_per_worker
        if train.workers * each > usable_count():
            return []
        return [usable[worker * each : (worker + 1) * each] for worker in range(train.workers)]
    lists = core_lists(train.affinity)
    for worker, cores in enumerate(lists):
        if missing := sorted(set(cores) - set(usable)):
            raise UserMistake(
                f"train.affinity: expected for worker {worker} cores that this process may use "
                f"({format_cores(usable)}), got "
                f'{format_cores(missing)}; name others, or let affinity = "auto" choose'
            )
    return lists


def crowded(job: Job) -> str:
    """Why its threads have to share cores; "" where they need not."""
    threads, cores = job.train.workers * job.train.threads_per_worker, usable_count()
    if threads <= cores:
        return ""
    return f"{threads} threads of {job.train.workers} workers have {cores} cores: expected a core for each"


def format_cores(cores: Sequence[int]) -> str:
    """Returns the cores as taskset writes a list: 0-3,8."""
    starts = [at for at in range(len(cores)) if at == 0 or cores[at] != cores[at - 1] + 1]
    runs = [(cores[first], cores[end - 1]) for first, end in pairwise([*starts, len(cores)])]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
