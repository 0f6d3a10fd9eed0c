"""The common part of the tests of `fit`: a job and its rows, what may be left behind, and deaths of workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import streamtrain
from streamtrain import _native

TABLES: dict[str, Any] = {
    "columns": {
        "a": {"kind": "number", "standardize": True},
        "b": {"kind": "number"},
        "colour": {"kind": "category", "buckets": 16, "embed": 2},
        "w": {"role": "weight"},
        "y": {"role": "label"},
    },
    "records": {"format": "msgpack"},
    "model": {"layers": [{"dense": 8, "activation": "relu"}], "loss": "binary_cross_entropy"},
    "optimizer": {"name": "adam", "learning_rate": 0.01},
    "train": {"batch_rows": 64, "averaging_frequency": 3, "workers": 2, "round_interval": "off"},
}


def with_train(**settings: Any) -> dict[str, Any]:
    return {**TABLES, "train": {**TABLES["train"], **settings}}


ALONE = with_train(workers=1)  # for what the number of workers does not change: half the cost


def columns(rows: int, seed: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    a, b = random.normal(2, 3, rows), random.normal(size=rows)
    return {
        "a": a,
        "b": b,
        "colour": random.choice(["red", "green", "blue"], rows),
        "w": 1.0 + np.arange(rows) % 3,
        "y": (a - 2 + 3 * b > 0).astype(np.int64),
    }


@cache
def whole_fit(rows: int, epochs: int = 1) -> streamtrain.Fitted:
    """A fit of TABLES to `columns(rows)`, one for all tests of this process."""
    return streamtrain.fit(TABLES, columns(rows), epochs=epochs)


def dicts(rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(rows, row, strict=True)) for row in zip(*(cells.tolist() for cells in rows.values()), strict=True)]


def same_bits(one: streamtrain.Snapshot, other: streamtrain.Snapshot) -> bool:
    return one.parameters.keys() == other.parameters.keys() and all(
        np.array_equal(array, arrays[name])
        for mine, arrays in ((one.parameters, other.parameters), (one.statistics, other.statistics))
        for name, array in mine.items()
    )


SERVERS: set[int] = set()  # fork servers of this process


def workers() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    found = {pid for task in tasks for pid in _read(task / "children").split()}
    ours = {int(pid) for pid in found if b"streamtrain.run" in _read(Path(f"/proc/{pid.decode()}/cmdline"))}
    return sorted(ours - SERVERS)


def kill_a_worker(worker: int = 0) -> None:
    os.kill(workers()[worker], signal.SIGKILL)


def killing_a_worker(rows: Iterable[Any], at: int, worker: int = 0) -> Iterator[Any]:
    """Yields the rows, and kills a worker before the one of number `at`."""
    for number, row in enumerate(rows):
        if number == at:
            kill_a_worker(worker)
        yield row


class Deaths(list[str]):
    """An `on_event` that lists how workers died."""

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "worker_died":
            self.append(event["how"])


def _read(path: Path) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        return path.read_bytes()
    return b""


def descriptors() -> list[int]:
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists the folder
            if path.readlink().name.startswith("memfd:streamtrain-arena"):
                found.append(int(path.name))
    return found


def arena() -> _native.Arena:
    """The arena of the one `fit` that runs, as another process would have it."""
    newest = max(descriptors(), key=lambda each: os.fstat(each).st_ctime_ns)  # tests before may have left some
    return _native.Arena.attach(os.dup(newest))


def left() -> list[str]:
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if "streamtrain-arena" in line]
    threads = [thread.name for thread in threading.enumerate() if thread.name in ("source", "ingest", "publisher")]
    return [*map(str, workers()), *maps, *threads]
