"""One of streamtrain's own commands as a child of the demo: its JSON lines become events, its logs go to a file.

It is in a session of its own, so that Ctrl-C is the demo's alone, and killed when the demo dies.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from streamtrain.broker.process import die_with_parent
from streamtrain.errors import CheckFailed, KafkaUnreachable, Replaced, StreamtrainError, UserMistake

Event = dict[str, Any]
LOG_TAIL_LINES = 15
KILL_S = 5.0  # after SIGKILL
_ERRORS: dict[int, type[StreamtrainError]] = {1: CheckFailed, 2: UserMistake, 3: KafkaUnreachable, 4: Replaced}
_MAIN = "from streamtrain.cli import main; main()"


class Child:
    """`streamtrain COMMAND … --json`; call from the thread that lives as long as the demo."""

    def __init__(self, arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.command = arguments[0]
        self._log = log
        self.events: queue.Queue[Event] = queue.Queue()
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, *arguments, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stream,
                start_new_session=True,
                preexec_fn=die_with_parent(),
                env=dict(environment),
                text=True,
            )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            try:
                self.events.put(json.loads(line))
            except ValueError:  # killed within a line
                return

    def taken(self) -> list[Event]:
        """The events that came since the last call."""
        return [self.events.get_nowait() for _ in range(self.events.qsize())]

    def ended(self) -> bool:
        return self._process.poll() is not None

    def check(self) -> None:
        """Raises what it ended of, if it has ended by itself."""
        code = self._process.poll()
        if code is None:
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise _ERRORS.get(code, StreamtrainError)(
            f"streamtrain {self.command} {how}; the end of its log ({self._log}):\n{self.log_tail()}"
        )

    def drain(self) -> None:
        """SIGTERM: it finishes what it has begun. Does not wait."""
        if not self.ended():
            self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, when all its events are in the queue; None if it still runs."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(KILL_S)
        return code

    def kill(self) -> None:
        """Nothing of it is left; its own children die with it."""
        if not self.ended():
            self._process.kill()
            self._process.wait(KILL_S)

    def log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:]) or "(it wrote nothing)"
