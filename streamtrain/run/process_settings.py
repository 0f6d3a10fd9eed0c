"""Settings of a process at the kernel: its parent, children, name and standard streams."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36


def die_with_parent(parent: int) -> None:
    """The process ends when process `parent`, which must be its parent, does, however that happens."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


def show_as(name: str) -> None:
    """Sets the name that `top` and `ps -o comm` show for this process: the first 15 bytes of `name`."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()))


def adopt_orphans() -> None:
    """From now on this process is the parent of its children's children when those have ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def open_standard_streams() -> None:
    """Opens the null device as standard input, output and error where they are closed.

    Else the next descriptor that is opened would become one of them, and a child would take it for its own.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _prctl(option: int, value: object) -> None:
    ctypes.CDLL(None).prctl(option, value)
