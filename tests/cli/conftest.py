"""The command line called in this process, and a job on the tests' Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trained_job import trained_job as trained_job

from streamtrain.cli import main


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ended]

JOB = """\
name = "{name}"

[kafka]
bootstrap.servers = "{bootstrap}"

[topics]
records.partitions = 2

[records]
format = "{format}"

[columns]
delay = {{ kind = "number", standardize = true, missing = 0 }}
carrier = {{ kind = "category", buckets = 64, embed = 8, missing = "" }}
late = {{ role = "label", missing = "skip" }}
flight = {{ role = "key" }}

[model]
layers = [ {{ dense = 8, activation = "relu" }} ]
"""

ROWS = """\
flight,delay,carrier,late,unused
1,1.5,AA,1,x
2,,UA,0,y
1,bad,"U,A",0,z
3,-3,,,
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls `streamtrain` with arguments; gives the exit code and what it wrote."""

    def call(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def new_job(kafka: Any, tmp_path: Path) -> Callable[..., Path]:
    """Writes a job file under a name nobody else uses."""

    def write(name: str = "", bootstrap: str = "", format: str = "json") -> Path:
        path = tmp_path / "job.toml"
        name, bootstrap = name or kafka.fresh_name("cli"), bootstrap or kafka.bootstrap
        path.write_text(JOB.format(name=name, bootstrap=bootstrap, format=format))
        return path

    return write


@pytest.fixture
def job(new_job: Callable[..., Path], run: Run) -> Path:
    """A job file in JSON whose topics are there."""
    path = new_job()
    assert run("topics", "create", path, "-q").code == 0
    return path
