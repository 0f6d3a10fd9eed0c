"""What a `fit` has in this process and below it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from streamtrain import _native


def workers() -> list[int]:
    """The processes of this one that train."""
    children = Path(f"/proc/{os.getpid()}/task")
    found = {int(pid) for task in children.iterdir() for pid in (task / "children").read_text().split()}
    return sorted(pid for pid in found if b"streamtrain.run" in Path(f"/proc/{pid}/cmdline").read_bytes())


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
