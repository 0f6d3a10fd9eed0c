"""A process that may open no more files cannot come back to Kafka: a command's ends with it, and says so.

A program that follows or writes goes on by itself once it may again.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from waiting import wait_for

from streamtrain.broker import Broker
from tests.e2e.harness import LiveJob, Running
from tests.regress.test_0140_leaderless_snapshots import Named

# Follows and writes; says after each line it is given which snapshot it has, and whether it is connected.
PROGRAM = """
import sys
from streamtrain import LiveModel, RecordWriter
with RecordWriter(sys.argv[1]) as writer, LiveModel(sys.argv[2], sys.argv[3]) as model:
    model.wait_ready(60)
    for line in sys.stdin:
        if line == "write\\n":
            writer.write({"x1": 1, "x2": 1, "x3": 1, "x4": 1, "colour": "red", "y": 1})
        elif line == "flush\\n":
            writer.flush(240)
        print(model.version, model.connected, flush=True)
"""


def no_more_files(process: int) -> tuple[int, int]:
    """What is open stays open; gives the limits there were."""
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (3, before[1]))
    return before


def ended(running: Running) -> None:
    """A command ends since one of its processes may open no more files, and says so."""
    assert running.finish(300) == 1, running.errors()[-4000:]
    assert "ulimit -n" in running.errors(), running.errors()[-4000:]


class Program:
    """PROGRAM, which follows and writes."""

    def __init__(self, job: LiveJob) -> None:
        command = [sys.executable, "-c", PROGRAM, str(job.path), job.name, job.bootstrap]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def told(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(60)


def training(job: LiveJob, place: int) -> Running:
    """A trainer of which one process may open no more files: coordinator, ingest."""
    running = job.start("train")
    running.wait_event("published", rows=500)
    no_more_files(running.children()[place].pid)
    return running


def predicting(job: LiveJob) -> Running:
    """A predictor of which none may."""
    running = job.start("predict")
    wait_for(lambda: "predicting" in running.log.read_text())
    for process in [psutil.Process(running.process.pid), *running.children()]:
        no_more_files(process.pid)
    return running


def test_commands_end_and_a_program_goes_on_when_it_may_again(
    private_kafka: Callable[..., Broker], tmp_path: Path
) -> None:
    """All of them through one loss of the broker."""
    broker = private_kafka(data=tmp_path / "kafka")
    jobs = []
    for name in ("coordinator", "ingest", "served", "followed"):
        (tmp_path / name).mkdir()
        jobs.append(LiveJob(Named(broker, name), tmp_path / name))
        jobs[-1].produce(500)
    *_, served, followed = jobs
    served.train("--until-end")
    followed.train("--until-end")
    commands = [*(training(job, place) for place, job in enumerate(jobs[:2])), predicting(served)]
    program = Program(followed)
    wait_for(lambda: program.told("look").endswith(" True"))
    first = program.told("look").split()[0]
    before = no_more_files(program.process.pid)
    broker.kill()
    broker.start()
    assert program.told("write") != ""
    wait_for(lambda: program.told("look") == f"{first} False")
    for running in commands:
        ended(running)
    resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, before)
    assert program.told("flush") != ""  # delivered
    followed.train("--until-end")
    wait_for(lambda: program.told("look") == f"{int(first) + 1} True")
    assert program.end() == 0
    assert followed.verified()["rows"]["trained"] == 501
