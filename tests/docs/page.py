"""A page of documentation: its blocks, and a shell in which they are run as a reader would."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PORT = "9092"  # the pages'; a run takes one that is free
HTTP_PORT = "8080"  # the same of a server that a page starts
METRICS_PORT = "9400"  # the same of a trainer's metrics
STEP_S = 240
Block = tuple[str, str]  # kind, text


def blocks(page: Path) -> list[Block]:
    """The fenced blocks in order."""
    found: list[Block] = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found


def spans(page: Path) -> list[str]:
    """What stands in single backquotes in its prose and tables."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = re.findall(r"`([^`\n]+)`", prose)
    return found


def free_port(*beside: int) -> int:
    """Another than those. Below the ephemeral range, where no connection of ours can hold it."""
    for port in range(20_000 + os.getpid() % 5_000, 32_000):
        with socket.socket() as listener:
            if port in beside:
                continue
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


class Shell:
    """Runs blocks in one folder, with the pages' Kafka at `port`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("STREAMTRAIN_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_DATA_HOME": str(folder / "data"),
        }
        self.environment.pop("KAFKA_HOME", None)
        self._port = port
        self._http_port = str(free_port(port))
        self._metrics_port = str(free_port(port, int(self._http_port)))
        self._printed: list[str] = []

    def run(self, kind: str, text: str) -> str:
        """Runs one block, which must end well; gives what it printed."""
        text = text.replace(f"localhost:{PORT}", f"localhost:{self._port}")
        text = text.replace("broker start ", f"broker start --port {self._port} ")
        text = re.sub(rf"(localhost:|--port ){HTTP_PORT}\b", rf"\g<1>{self._http_port}", text)
        text = re.sub(rf"(127.0.0.1:|--metrics-port ){METRICS_PORT}\b", rf"\g<1>{self._metrics_port}", text)
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-euo", "pipefail", "-c", text]
        ended = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=STEP_S, check=False
        )
        self._printed.append(f"{text}\n{ended.stdout}\n{ended.stderr}")
        assert ended.returncode == 0, "\n".join([*self._printed, f"ended with {ended.returncode}"])
        return ended.stdout

    def end(self) -> None:
        """Ends what a page has left running, whose numbers stand in files of the folder."""
        for path in self.folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)
