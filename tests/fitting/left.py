"""Everything that a `fit` has in this process and below it, and how its workers are killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamtrain import _native

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
    (descriptor,) = descriptors()
    return _native.Arena.attach(os.dup(descriptor))


def left() -> list[str]:
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if "streamtrain-arena" in line]
    threads = [thread.name for thread in threading.enumerate() if thread.name in ("source", "ingest", "publisher")]
    return [*map(str, workers()), *maps, *threads]
