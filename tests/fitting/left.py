"""What a `fit` has in this process and below it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from streamtrain import _native

SERVERS: set[int] = set()  # fork servers of this process


def workers() -> list[int]:
    """The processes of this one that train."""
    tasks = Path("/proc/self/task").iterdir()
    found = {pid for task in tasks for pid in _read(task / "children").split()}
    ours = {int(pid) for pid in found if b"streamtrain.run" in _read(Path(f"/proc/{pid.decode()}/cmdline"))}
    return sorted(ours - SERVERS)


def killing_a_worker(rows: Iterable[Any], at: int, worker: int = 0) -> Iterator[Any]:
    """Gives the rows, and kills a worker before the one of number `at`."""
    for number, row in enumerate(rows):
        if number == at:
            os.kill(workers()[worker], signal.SIGKILL)
        yield row


def _read(path: Path) -> bytes:
    """Nothing, of a process or a thread that has just ended."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def descriptors() -> list[int]:
    """Of arenas this process has open."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            target = path.readlink()
        except FileNotFoundError:  # the one this look was made with
            continue
        if target.name.startswith("memfd:streamtrain-arena"):
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
