"""A process that may outlive the one that started it, known by its number and start time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from streamtrain.errors import writing

POLL_S = 0.02
# becomes the command, which is killed when the thread that spawned it ends: prctl(2), PR_SET_PDEATHSIG. A preexec_fn of
# Popen would run between fork and exec, in a copy of a process that may have threads
LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
    signal.signal(ignored, signal.SIG_DFL)
if os.getppid() == int(sys.argv[1]):  # else it died before the call above
    os.execvp(sys.argv[2], sys.argv[2:])
"""


class Process:
    """A process by number and start time (clock ticks since boot), so that a number used again is not taken for it."""

    def __init__(self, pid: int, started: int, child: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self.started = started
        self._child = child

    @classmethod
    def spawn(
        cls, command: list[str], output: Path, detached: bool, environment: Mapping[str, str] | None = None
    ) -> Process:
        """Start `command` in a session of its own (Ctrl-C does not reach it), its output to the file `output`.

        Unless detached it is killed when the thread that called this ends, however that happens. The caller keeps it
        within `uninterrupted`, else a Ctrl-C may leave a process that nobody knows.
        """
        launcher = [] if detached else [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
        with writing(output.parent, "a log"):
            stream = output.open("wb")
        with stream:
            child = subprocess.Popen(
                [*launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        return cls(child.pid, _start_ticks(child.pid) or 0, child)

    def alive(self) -> bool:
        """Returns whether it runs; a zombie does not."""
        if self._child is not None:
            return self._child.poll() is None
        return self.started != 0 and _start_ticks(self.pid) == self.started

    @property
    def exit_code(self) -> int | None:
        """Returns the exit code of a process that this one started; None while it runs."""
        return None if self._child is None else self._child.poll()

    def terminate(self) -> None:
        """SIGTERM; does not wait."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self.wait(10)

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; False if it still runs after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _signal(self, number: int) -> None:
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def _start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (proc(5)); None if there is no such process or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])
