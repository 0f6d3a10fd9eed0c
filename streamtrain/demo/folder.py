"""The demo's folder: its job file, Kafka's data, the logs of its processes; and what an earlier run left in it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from streamtrain.errors import UserMistake

FOLDER = Path("streamtrain-demo")
JOB_NAME = "flights"
JOB_FILE = """\
# Written by `streamtrain demo`: will a flight out of New York arrive more than 15 minutes late?
name = "{name}"

[kafka]
bootstrap.servers = "{bootstrap}"

[records]
format = "json"

[columns]
dep_delay = {{ kind = "number", standardize = true, missing = 0 }}   # minutes; null where the flight was cancelled
distance  = {{ kind = "number", standardize = true }}                # miles
hour      = {{ kind = "category", buckets = 32, embed = 4 }}         # of the scheduled departure, New York's time
month     = {{ kind = "category", buckets = 16, embed = 2 }}
day       = {{ kind = "number", standardize = true }}
weekday   = {{ kind = "category", buckets = 16, embed = 2 }}         # Monday is 0
carrier   = {{ kind = "category", buckets = 64, embed = 4 }}
origin    = {{ kind = "category", buckets = 16, embed = 2 }}
dest      = {{ kind = "category", buckets = 256, embed = 8 }}
sched     = {{ role = "event_time", unit = "ms" }}
late      = {{ role = "label", missing = "skip" }}                   # a flight that never arrived has none

[model]
layers = [ {{ dense = 64, activation = "relu" }}, {{ dense = 32, activation = "relu" }} ]
loss   = "binary_cross_entropy"

[optimizer]
name = "adam"
learning_rate = 3e-3

[train]
batch_rows = 64
workers = {workers}

[publish]
interval = "500ms"
"""


@dataclass(frozen=True)
class Folder:
    """The folder of everything that the demo writes."""

    path: Path = FOLDER

    @property
    def job_file(self) -> Path:
        return self.path / f"{JOB_NAME}.toml"

    @property
    def kept_job_file(self) -> Path:
        """An earlier run's, moved aside."""
        return self.path / f"{JOB_NAME}-before.toml"

    @property
    def kafka(self) -> Path:
        return self.path / "kafka"

    def log(self, command: str) -> Path:
        return self.path / f"{command}.log"

    def make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserMistake(
                f"{self.path}: expected to make a folder here for the demo, got: {error.strerror}; go to another folder"
            ) from error

    def write_job(self, text: str) -> None:
        """The job file of this run; one that is there is kept beside it."""
        if self.job_file.exists():
            self.job_file.replace(self.kept_job_file)
        self.job_file.write_text(text, encoding="utf-8")


def job_text(name: str, bootstrap: str, workers: int) -> str:
    """The job file's."""
    return JOB_FILE.format(name=name, bootstrap=bootstrap, workers=workers)


def jobs_in(topics: Collection[str]) -> list[str]:
    """The names of the demo's jobs whose topics are among `topics`, oldest first."""
    found = {match[1] for topic in topics if (match := re.fullmatch(rf"({JOB_NAME}(?:-\d+)?)\.[a-z-]+", topic))}
    return sorted(found, key=lambda name: int(name.rpartition("-")[2]) if "-" in name else 1)


def fresh_name(topics: Collection[str]) -> str:
    """A job name none of whose topics is there: flights, flights-2, …"""
    taken = set(jobs_in(topics))
    return next(name for number in count(1) if (name := JOB_NAME + (f"-{number}" if number > 1 else "")) not in taken)
