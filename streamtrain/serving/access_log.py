"""A line of each request on stderr, in the form of the other logs: plain, or JSON lines. Written some times a second.

The lines go past `logging`, which would take as long for one as an answer takes.
"""

from __future__ import annotations

import json
import sys
import time

from streamtrain.log import CONTROL
from streamtrain.serving.reply import Reply

_MOST_LINES = 10_000  # kept between two writings; more are counted and told


class AccessLog:
    """One process's."""

    def __init__(self, format: str, process: str) -> None:
        self._is_json = format == "json"
        self._process = process
        self._lines: list[str] = []
        self._left_out = 0
        self._clock_s, self._clock = 0, ""

    def say(self, method: str, path: str, client: str, job: str, reply: Reply, seconds: float) -> None:
        """`path` may hold anything."""
        if len(self._lines) >= _MOST_LINES:
            self._left_out += 1
            return
        now_s = time.time()
        if self._is_json:
            self._lines.append(
                f'{{"time":"{self._time(now_s)}.{int(now_s * 1000) % 1000:03d}Z","level":"info",'
                f'"process":"{self._process}","logger":"streamtrain.serving.access","message":"answered",'
                f'"method":"{method}","path":{json.dumps(path)},"client":"{client}","job":"{job}",'
                f'"status":{reply.code},"rows":{reply.rows},"errors":{reply.errors},"version":{reply.version},'
                f'"bytes":{len(reply.body)},"ms":{seconds * 1000:.3f}}}\n'
            )
            return
        safe_path = CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", path).replace("\n", "\\n")
        self._lines.append(
            f"{self._time(now_s)} INFO {self._process}  {method} {safe_path} status={reply.code} rows={reply.rows} "
            f"errors={reply.errors} version={reply.version} ms={seconds * 1000:.3f} client={client}\n"
        )

    def flush(self) -> None:
        """Writes what there is."""
        lines, self._lines = self._lines, []
        if self._left_out:
            left_out, self._left_out = self._left_out, 0
            lines.append(f'{{"level":"warning","message":"lines left out","lines":{left_out}}}\n' if self._is_json
                         else f"{left_out} lines left out\n")  # fmt: skip
        if lines:
            sys.stderr.write("".join(lines))
            sys.stderr.flush()

    def _time(self, now_s: float) -> str:
        """Returns the time to the second; the text is made once for each second."""
        if int(now_s) != self._clock_s:
            self._clock_s = int(now_s)
            of = time.gmtime(now_s) if self._is_json else time.localtime(now_s)
            self._clock = time.strftime("%Y-%m-%dT%H:%M:%S" if self._is_json else "%H:%M:%S", of)
        return self._clock


def process_name(number: int | None) -> str:
    """Returns the name of a process of the server in the logs."""
    return "serve" if number is None else f"serve-{number}"
