"""Processor time and memory of a command's processes, as the kernel tells them (proc(5)).

Read when somebody asks for the metrics and at no other time, by the process that is asked: others do nothing for it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
_OURS = "st-"  # before a name where others see it
_MOST = 512  # processes looked at: more than a trainer has


class Spent(NamedTuple):
    cpu_s: float
    pss_bytes: int  # pages that n processes share count as 1/n in each


class Processes(Collector):
    """A collector for a command's first process, called `name`, and all processes below it, by the names they set.

    `job`: "" if they work for several. `first`: the first process's id, if it is not this process.
    """

    def __init__(self, job: str, name: str, first: int | None = None) -> None:
        self._of = {"job": job} if job else {}
        self._name, self._first = name, first

    def collect(self) -> Iterator[Metric]:
        labels = (*self._of, "process")
        cpu = CounterMetricFamily("streamtrain_process_cpu_seconds", "processor time, by process", labels=labels)
        pss = GaugeMetricFamily(
            "streamtrain_process_pss_bytes", "memory, by process; what several share is split among them", labels=labels
        )
        for name, spent in self._spent().items():
            cpu.add_metric((*self._of.values(), name), spent.cpu_s)
            pss.add_metric((*self._of.values(), name), spent.pss_bytes)
        yield from (cpu, pss)

    def _spent(self) -> dict[str, Spent]:
        cpu_s: Counter[str] = Counter()
        pss_bytes: Counter[str] = Counter()
        first = os.getpid() if self._first is None else self._first
        for process in family(first):
            try:
                own = _name(process) if process != first else self._name
                spent = spent_by(process)
            except (OSError, ValueError, IndexError):  # it has ended, or may not be looked into
                continue
            cpu_s[own] += spent.cpu_s  # type: ignore[assignment]
            pss_bytes[own] += spent.pss_bytes
        return {name: Spent(cpu_s[name], pss_bytes[name]) for name in cpu_s}


def family(process: int) -> list[int]:
    """The process and all below it."""
    found = [process]
    for each in found:  # which grows
        if len(found) < _MOST:
            found += _children(each)
    return found


def _children(process: int) -> list[int]:
    """Returns the children of each thread of a process; [] if this kernel does not list them."""
    found: list[int] = []
    with suppress(OSError):  # the process has ended meanwhile
        for thread in (_PROC / str(process) / "task").iterdir():
            with suppress(OSError):  # or this thread of it
                found += map(int, (thread / "children").read_text().split())
    return found


def _name(process: int) -> str:
    return (_PROC / str(process) / "comm").read_text(errors="replace").strip().removeprefix(_OURS)


def spent_by(process: int) -> Spent:
    """Raises OSError where there is no such process."""
    # behind the name, which may hold anything: state is field 3, utime 14, stime 15
    fields = (_PROC / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    ticks = int(fields[14 - 3]) + int(fields[15 - 3])
    lines = (_PROC / str(process) / "smaps_rollup").read_text().splitlines()
    kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return Spent(ticks / _TICKS_PER_S, kilobytes * 1024)
