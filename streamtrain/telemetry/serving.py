"""The figures of a server of predictions: one table in memory that its processes share, each with a row of its own.

Summed where they are asked for, by whichever process is.
"""

from __future__ import annotations

import ctypes
import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from streamtrain import __version__
from streamtrain.telemetry.process_usage import Processes

BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
CODES = (200, 400, 401, 404, 405, 408, 413, 415, 422, 429, 500, 503)
NO_JOB = ""  # of a request for a job that is not served
_ROWS, _ROW_ERRORS, _SECONDS, _VERSION, _CREATED_S, _READY, _FIRST_CODE = range(7)
_FIRST_BUCKET = _FIRST_CODE + len(CODES)
_WIDTH = _FIRST_BUCKET + len(BUCKETS_S) + 1
_CODE_AT = {code: _FIRST_CODE + at for at, code in enumerate(CODES)}


class ServingTable:
    """The figures of `processes` processes that serve `jobs`.

    The command's process makes the table and hands it to the processes that it spawns.
    """

    def __init__(self, jobs: Sequence[str], processes: int) -> None:
        self.jobs = (*jobs, NO_JOB)
        self.processes = processes
        self._command = os.getpid()
        self._shared: Any = get_context("spawn").RawArray(ctypes.c_double, processes * self._row_size)

    @property
    def _row_size(self) -> int:
        return 1 + len(self.jobs) * _WIDTH

    def view(self) -> memoryview[float]:
        return memoryview(self._shared).cast("B").cast("d")

    def row(self, process: int) -> ServingRow:
        """Returns the row that process `process` writes."""
        start = process * self._row_size
        return ServingRow(self.view()[start : start + self._row_size], self.jobs)

    def listening(self) -> int:
        """Returns how many processes are listening."""
        return int(sum(self.view()[:: self._row_size]))

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry())

    def registry(self) -> CollectorRegistry:
        """Returns the registry for this text: the figures, and the processor time and memory of the processes."""
        registry = CollectorRegistry()
        registry.register(_Figures(self))
        registry.register(Processes(NO_JOB, "serve", self._command))
        return registry

    def of_job(self, at: int) -> list[list[float]]:
        """The figures of a job, a list for each process that listens."""
        view, rows = self.view(), range(0, self.processes * self._row_size, self._row_size)
        starts = [row + 1 + at * _WIDTH for row in rows if view[row]]
        return [list(view[start : start + _WIDTH]) for start in starts]


class ServingRow:
    """One process's figures. One thread writes them."""

    def __init__(self, view: memoryview[float], jobs: Sequence[str]) -> None:
        self._view = view
        self._start = {job: 1 + at * _WIDTH for at, job in enumerate(jobs)}

    def listens(self, whether: bool) -> None:
        self._view[0] = float(whether)

    def answered(self, job: str, code: int, rows: int, row_errors: int, seconds: float) -> None:
        """A request was."""
        view, start = self._view, self._start[job]
        view[start + _CODE_AT.get(code, _CODE_AT[500])] += 1
        view[start + _ROWS] += rows
        view[start + _ROW_ERRORS] += row_errors
        view[start + _SECONDS] += seconds
        view[start + _FIRST_BUCKET + bisect_left(BUCKETS_S, seconds)] += 1

    def serves(self, job: str, version: int, created_s: float) -> None:
        """With which snapshot; version 0: with none."""
        start = self._start[job]
        self._view[start + _VERSION], self._view[start + _CREATED_S] = version, created_s
        self._view[start + _READY] = float(version > 0)


class _Figures(Collector):
    def __init__(self, table: ServingTable) -> None:
        self._table = table

    def collect(self) -> Iterator[Metric]:
        counted = [
            _counter("requests", "requests answered, those refused among them"),
            _counter("request_errors", "requests answered with a status of 400 or above"),
            _counter("rows", "rows predicted"),
            _counter("row_errors", "rows answered with an error"),
        ]
        responses = CounterMetricFamily("streamtrain_responses", "requests answered, by status", labels=("job", "code"))
        took = HistogramMetricFamily(
            "streamtrain_request_seconds", "time from a request's head to its answer", labels=("job",)
        )
        version = _gauge("snapshot_version", "version of the snapshot that predicts; the oldest of the processes'")
        age = _gauge("snapshot_age_seconds", "time since that snapshot was made")
        ready = _gauge("ready", "1 where every process has a trained snapshot")
        for at, job in enumerate(self._table.jobs):
            rows = self._table.of_job(at)
            sums = [sum(column) for column in zip(*rows, strict=True)] or [0.0] * _WIDTH
            codes = dict(zip(CODES, sums[_FIRST_CODE:_FIRST_BUCKET], strict=True))
            errors = sum(count for code, count in codes.items() if code >= 400)
            totals = (sum(codes.values()), errors, sums[_ROWS], sums[_ROW_ERRORS])
            for family, total in zip(counted, totals, strict=True):
                family.add_metric((job,), total)
            for code, count in codes.items():
                if count:
                    responses.add_metric((job, str(code)), count)
            took.add_metric((job,), _buckets(sums[_FIRST_BUCKET:]), sums[_SECONDS])
            if job != NO_JOB:
                ready_rows = [row for row in rows if row[_READY]]
                version.add_metric((job,), min((row[_VERSION] for row in ready_rows), default=0.0))
                ready.add_metric((job,), float(len(ready_rows) == self._table.processes))
                if ready_rows:
                    age.add_metric((job,), max(0.0, time.time() - min(row[_CREATED_S] for row in ready_rows)))
        listening = GaugeMetricFamily("streamtrain_serving_processes", "processes that listen")
        listening.add_metric((), self._table.listening())
        about = GaugeMetricFamily("streamtrain_info", "version of streamtrain", labels=("version",))
        about.add_metric((__version__,), 1.0)
        yield from (*counted, responses, took, version, age, ready, listening, about)


def _counter(name: str, text: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"streamtrain_{name}", text, labels=("job",))


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"streamtrain_{name}", text, labels=("job",))


def _buckets(counts: Sequence[float]) -> list[tuple[str, float]]:
    """Returns Prometheus's cumulative buckets: each includes the ones before."""
    total, found = 0.0, []
    for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), counts, strict=True):
        total += count
        found.append((bound, total))
    return found
