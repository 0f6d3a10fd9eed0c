"""A slow thing that is started once for all of xdist's workers."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


@contextmanager
def one_for_all(folder: Path, name: str, start: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """The address of one `name` for every process that asks with this folder. The first starts it, and ends it when the
    others are done."""
    address_file = folder / f"{name}.address"
    with (folder / f"{name}.users").open("w") as users, (folder / f"{name}.start").open("w") as starting:
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(starting, fcntl.LOCK_EX)
        if address_file.exists():
            fcntl.flock(starting, fcntl.LOCK_UN)
            yield address_file.read_text()
            return
        with start() as address:
            address_file.write_text(address)
            fcntl.flock(starting, fcntl.LOCK_UN)
            yield address
            fcntl.flock(users, fcntl.LOCK_EX)
            address_file.unlink()  # who asks from now on starts another
