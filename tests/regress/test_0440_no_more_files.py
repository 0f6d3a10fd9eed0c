"""A process that may open no more files cannot come back to Kafka: a command's ends with it, and says so.

A program that follows or writes goes on by itself once it may again.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
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


@pytest.fixture
def own(modules_kafka: Broker, tmp_path: Path) -> tuple[Broker, LiveJob]:
    return modules_kafka, LiveJob(Named(modules_kafka, tmp_path.name), tmp_path)


def no_more_files(process: int) -> tuple[int, int]:
    """What is open stays open; gives the limits there were."""
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (3, before[1]))
    return before


def ended(running: Running) -> str:
    """What a command said that ends since one of its processes may open no more files."""
    assert running.finish(300) == 1, running.errors()[-4000:]
    said = running.errors()
    assert "ulimit -n" in said, said[-4000:]
    return said


@pytest.mark.parametrize("place", [0, 1], ids=["coordinator", "ingest"])
def test_a_trainer_ends(own: tuple[Broker, LiveJob], place: int) -> None:
    broker, job = own
    job.produce(500)
    running = job.start("train")
    running.wait_event("published", rows=500)
    no_more_files(running.children()[place].pid)
    broker.kill()
    broker.restart()
    ended(running)


def test_a_predictor_ends(own: tuple[Broker, LiveJob]) -> None:
    broker, job = own
    job.produce(500)
    job.train("--until-end")
    running = job.start("predict")
    said = running.log
    wait_for(lambda: "predicting" in said.read_text())
    for process in [psutil.Process(running.process.pid), *running.children()]:
        no_more_files(process.pid)
    broker.kill()
    broker.restart()
    ended(running)


def test_a_program_goes_on_when_it_may_again(own: tuple[Broker, LiveJob]) -> None:
    broker, job = own
    job.produce(500)
    job.train("--until-end")
    command = [sys.executable, "-c", PROGRAM, str(job.path), job.name, job.bootstrap]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None and program.stdout is not None

        def told(line: str) -> str:
            program.stdin.write(f"{line}\n")
            program.stdin.flush()
            return program.stdout.readline().strip()

        wait_for(lambda: told("look").endswith(" True"))
        first = told("look").split()[0]
        before = no_more_files(program.pid)
        broker.kill()
        broker.restart()
        assert told("write") != ""
        wait_for(lambda: told("look") == f"{first} False")
        resource.prlimit(program.pid, resource.RLIMIT_NOFILE, before)
        assert told("flush") != ""  # delivered
        job.train("--until-end")
        wait_for(lambda: told("look") == f"{int(first) + 1} True")
        program.stdin.close()
    assert program.returncode == 0
    assert job.verified()["rows"]["trained"] == 501
