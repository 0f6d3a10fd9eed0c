"""The demo's folder: its job file, Kafka's data, its processes and their logs; and the names of its jobs."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from pathlib import Path

from streamtrain.broker.process import Process
from streamtrain.errors import CheckFailed, KafkaUnreachable, Replaced, StreamtrainError, UserMistake, writing

FOLDER = Path("streamtrain-demo")
JOB_NAME = "flights"
JOB_FILE, EARLIER_JOB_FILE = FOLDER / "flights.toml", FOLDER / "flights-before.toml"
KAFKA = FOLDER / "kafka"
LOG_TAIL_LINES = 15
ERRORS = {error.exit_code: error for error in (CheckFailed, UserMistake, KafkaUnreachable, Replaced)}


def make_folder() -> None:
    with writing(FOLDER, "the demo's files"):
        FOLDER.mkdir(exist_ok=True)


def job_text(name: str, bootstrap: str, workers: int) -> str:
    text = Path(__file__).with_name("flights.toml").read_text(encoding="utf-8")
    for default, value in (('"flights"', f'"{name}"'), ("localhost:9092", bootstrap), ("= 2\n", f"= {workers}\n")):
        text = text.replace(default, value, 1)
    return text


def write_job(text: str) -> None:
    """Writes the job file of this run; keeps that of an earlier one beside it."""
    with writing(FOLDER, "the demo's files"):
        if JOB_FILE.exists():
            JOB_FILE.replace(EARLIER_JOB_FILE)
        JOB_FILE.write_text(text, encoding="utf-8")


def jobs_in(topics: Collection[str]) -> list[str]:
    """Returns the names of the demo's jobs whose topics are among `topics`, oldest first."""
    found = {match[1] for topic in topics if (match := re.fullmatch(rf"({JOB_NAME}(?:-\d+)?)\.[a-z-]+", topic))}
    return sorted(found, key=lambda name: int(name.rpartition("-")[2]) if "-" in name else 1)


def fresh_name(earlier: Collection[str]) -> str:
    """Returns the first of the names flights, flights-2, … that no earlier job has."""
    names = (JOB_NAME if number == 1 else f"{JOB_NAME}-{number}" for number in count(1))
    return next(name for name in names if name not in earlier)


class Child:
    """A process that runs `streamtrain COMMAND …`. Ctrl-C does not reach it; it is killed when the demo dies."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name, self.log = f"streamtrain {command[0]}", FOLDER / f"{command[0]}.log"
        call = [sys.executable, "-P", "-c", "from streamtrain.cli import main; main()", *command]
        self.process = Process.spawn(call, self.log, detached=False, environment=environment)

    def check(self, expected: int | None = None) -> None:
        """Raises its error if it has ended, unless with the exit code `expected`."""
        code = self.process.exit_code
        if code is None or code == expected:
            return
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]) or "(it wrote nothing)"
        raise ERRORS.get(code, StreamtrainError)(f"{self.name} {how}; the end of its log ({self.log}):\n{tail}")
