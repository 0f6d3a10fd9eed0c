"""Signals to commands: the first lets them finish what they have begun, the second ends them with 130."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prediction_bench import PARTITIONS, Bench
from served_model import ServedModel
from waiting import wait_for

from streamtrain.cli.stopping import StoppedAtOnce, StopSignals
from tests.e2e import commands

PROGRAM = [sys.executable, "-c", "from streamtrain.cli import main; main()"]
NewJob = Callable[..., Path]
SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("first", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_signal_ends_what_is_done(first: int, second: int) -> None:
    with pytest.raises(StoppedAtOnce), StopSignals() as stop:
        os.kill(os.getpid(), first)
        assert stop.is_set() and stop.interrupted == (first == signal.SIGINT)
        os.kill(os.getpid(), second)


@pytest.mark.parametrize("writes", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_command_over_files_ends_while_it_waits(tmp_path: Path, new_job: Callable[..., Path], writes: bool) -> None:
    job, output = new_job(bootstrap="localhost:1"), tmp_path / "rows.npy"
    command = ["vectorize", "--output", str(output)] if writes else ["analyze"]
    arguments = [*PROGRAM, *command, str(job), "--input", "-", "--form", "csv", "--json"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as working:
        assert working.stdin is not None and working.stdout is not None
        working.stdin.write("delay,carrier,late\n" + "1,AA,1\n" * 100_000)
        working.stdin.flush()  # it reads: more than a pipe holds is gone
        if writes:
            assert any(path.name.endswith(".part") for path in tmp_path.iterdir())
        working.send_signal(signal.SIGINT)
        assert working.wait(60) == 130
        told = working.stdout.read()
    assert [path for path in tmp_path.iterdir() if path != job] == []
    if not writes:
        assert json.loads(told)["stopped"]


@pytest.mark.full
def test_a_second_sigterm_ends_a_predictor_whose_kafka_is_away(private_kafka: Any, new_job: NewJob) -> None:
    broker = private_kafka()
    bench = Bench(broker.bootstrap, "away")
    ServedModel(broker.bootstrap, "away").put()
    path = new_job("away", broker.bootstrap)
    command = [*PROGRAM, "predict", str(path), "--set", "predict.delivery=at_least_once", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as predictor:
        assert predictor.stderr is not None
        for i in range(20_000):  # more than it answers before Kafka is gone
            bench.ask([[i, 1]] * 50, str(i), partition=i % PARTITIONS)
        wait_for(lambda: bench.counts().total())
        broker.kill()
        next(line for line in predictor.stderr if "brokers are down" in line)
        predictor.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):  # it waits for Kafka to take the last answers
            predictor.wait(1)
        predictor.send_signal(signal.SIGTERM)
        assert predictor.wait(240) == 130


IN_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "background"]  # as a shell starts it


@pytest.mark.parametrize(
    ("number", "started"),
    [
        (signal.SIGINT, IN_BACKGROUND), (signal.SIGTERM, []),
        pytest.param(signal.SIGINT, [], marks=pytest.mark.full),
        pytest.param(signal.SIGTERM, IN_BACKGROUND, marks=pytest.mark.full),
    ],
    ids=["interrupted-in-background", "ended", "interrupted", "ended-in-background"],
)  # fmt: skip
def test_a_watched_status_in_a_pipe_is_shown_again_and_again_and_ends_with_130(
    job: Path, number: int, started: list[str]
) -> None:
    form = ["--json"] if number == signal.SIGINT else []
    with subprocess.Popen([*started, *PROGRAM, "status", str(job), "--watch", *form], stdout=-1, text=True) as watching:
        assert watching.stdout is not None
        begins = '{"job"' if form else "job "
        for _ in range(2):
            assert any(line.startswith(begins) for line in watching.stdout), "it ended"
        watching.send_signal(number)
        assert watching.wait(240) == 130


def test_a_second_sigterm_ends_a_trainer_that_cannot_publish(
    run: Callable[..., Any], job: Path, rows: Path, tmp_path: Path
) -> None:
    assert run("produce", job, "--input", rows, "-q").code == 0
    failpoints = {"STREAMTRAIN_FAILPOINTS": "coordinator.stall_in_transaction=3~60"}  # the first publication
    log = tmp_path / "train.log"
    with log.open("w") as errors:
        arguments = ["train", str(job), "--json", "--set", "records.max_dead_letter_share=1"]
        trainer = commands.start(arguments, errors, failpoints)
    assert trainer.stdout is not None
    next(event for event in map(json.loads, trainer.stdout) if event.get("rows") == 2)
    trainer.send_signal(signal.SIGTERM)
    wait_for(lambda: "draining" in log.read_text())
    trainer.send_signal(signal.SIGTERM)
    assert trainer.wait(240) == 130
