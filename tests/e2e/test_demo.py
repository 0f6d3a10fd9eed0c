"""`streamtrain demo` as a user has it: counts exact, verify passed, the next commands work, nothing is left running."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import wait_for

from streamtrain.broker import broker_status, stop_broker
from streamtrain.cli import main
from streamtrain.demo.flights import damaged_rows, load_flights

pytestmark = pytest.mark.kafka

STREAMTRAIN = str(Path(sys.executable).parent / "streamtrain")
ROWS = 20_000


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [STREAMTRAIN, "demo", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def demo(folder: Path, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, JSON lines and stderr."""
    process = start(folder, "--json", *arguments)
    out, errors = process.communicate(timeout=300)
    return process.returncode, [json.loads(line) for line in out.splitlines()], errors


def processes_in(folder: Path) -> list[psutil.Process]:
    """Returns the processes in the folder or with its Kafka's data."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) or str(folder) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until_none(folder: Path) -> None:
    wait_for(lambda: not processes_in(folder))


@pytest.fixture(scope="module", params=["named", pytest.param("own", marks=pytest.mark.full)])
def finished(request, tmp_path_factory, kafka):
    """A folder after a short demo, on a Kafka that is named or on one of its own, and what the demo reported."""
    folder = tmp_path_factory.mktemp("demo")
    named = ["--bootstrap", kafka.bootstrap] if request.param == "named" else []
    code, lines, errors = demo(folder, "--rows", str(ROWS), "--rate", "0", *named)
    assert code == 0, f"{lines[-3:]}\n{errors}"
    yield folder, lines, errors
    if named:
        kafka.names.append(f"{lines[-1]['job']}.")
    stop_broker(own_kafka(folder))


def own_kafka(folder: Path) -> Path:
    return folder / "streamtrain-demo" / "kafka"


def trains(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A demo that has trained some rows."""
    process = start(folder, "--json", "--rate", "2000", *arguments)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line).get("rows_trained", 0) > 0:
            break
    return process


def test_counts_are_exact_every_check_passes_and_it_learns(finished):
    _, lines, errors = finished
    summary = lines[-1]
    flights, damaged = load_flights(ROWS), damaged_rows(ROWS)
    unlabelled = sum(flights["late"] != flights["late"])
    assert summary["event"] == "summary" and summary["ok"] and summary["verify"]["ok"]
    assert summary["rows"] == {
        "produced": ROWS,
        "trained": ROWS - unlabelled - len(damaged),
        "filtered": unlabelled,
        "dead_lettered": len(damaged),
    }
    assert sum(summary["dead_letters"].values()) == len(damaged)
    predictions = summary["predictions"]
    assert predictions["answers"] == predictions["requests"] == ROWS // 50
    assert predictions["errors"] == 0
    assert errors == ""
    quality = summary["quality"]
    assert quality["log_loss"] < 0.8 * quality["constant_log_loss"] and quality["auc"] > 0.75


@pytest.mark.gpu
def test_on_a_gpu(tmp_path):
    code, lines, errors = demo(tmp_path, "--rows", str(ROWS), "--rate", "0", "--set", "train.backend=cuda")
    stop_broker(own_kafka(tmp_path))
    assert code == 0, f"{lines[-3:]}\n{errors}"
    assert lines[-1]["verify"]["ok"] and lines[-1]["quality"]["auc"] > 0.75


def test_what_it_tells_on_the_way(finished):
    folder, lines, _ = finished
    printed = [line["event"] for line in lines if line["event"] != "progress"]
    if own_kafka(folder).exists():
        assert [printed.pop(0), printed.pop(0)] == ["starting", "kafka"]
    elif printed[0] == "found":  # a job of another test's demo
        printed.pop(0)
    assert printed == ["job", "verifying", "summary"]
    assert lines[-1]["job"].startswith("flights")
    trained = [line["rows_trained"] for line in lines if line["event"] == "progress"]
    assert trained == sorted(trained) and trained[-1] > 0


def test_the_next_commands_work_as_pasted(finished, monkeypatch, capsys):
    folder, lines, _ = finished
    wait_until_none(folder)
    has_own = own_kafka(folder).exists()
    given = [shlex.split(following["command"]) for following in lines[-1]["next"]]
    assert len(given) == 3 and ("broker" in given[0]) == has_own
    monkeypatch.chdir(folder)
    outputs = []
    for command in given:
        if has_own:
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
            code, out, errors = done.returncode, done.stdout, done.stderr
        else:
            with pytest.raises(SystemExit) as ended:
                main(command[1:])
            (out, errors), code = capsys.readouterr(), ended.value.code or 0
        assert code == 0, f"{command}\n{out}\n{errors}"
        outputs.append(out)
    assert len(outputs[1].splitlines()) == len(damaged_rows(ROWS))
    assert "bit for bit" in outputs[2]
    if has_own:
        refused(folder)
        stop_broker(own_kafka(folder))


def refused(folder: Path) -> None:
    """A Kafka that the demo did not start is not used."""
    bootstrap = broker_status(own_kafka(folder)).bootstrap
    code, lines, errors = demo(folder, "--rows", "10")
    assert code == 2 and lines == []
    assert f"demo -b {bootstrap}" in errors and "broker stop --data streamtrain-demo/kafka" in errors
    assert broker_status(own_kafka(folder)).running


@pytest.mark.full
@pytest.mark.parametrize("finished", ["own"], indirect=True)
def test_a_second_run_says_what_it_found_and_starts_over(finished):
    folder, lines, _ = finished
    job_file = (folder / "streamtrain-demo" / "flights.toml").read_text()
    process = start(folder, "--rows", "2000", "--rate", "0", "--workers", "1")
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, out + errors
    rows = f"{lines[-1]['rows']['trained']:,} rows"
    assert re.search(rf"found job flights \(snapshot \d+, {rows}, log loss 0\.\d+\).* starting over as flights-2", out)
    assert "2,000 streamed" in out and "constant prediction's" in out
    assert "\x1b" not in out and max(map(len, out.splitlines())) < 200
    assert (folder / "streamtrain-demo" / "flights-before.toml").read_text() == job_file


@pytest.mark.full
def test_sigterm_while_kafka_starts(tmp_path):
    process = start(tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("starting Kafka")
    wait_for(lambda: len(processes_in(tmp_path)) >= 2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assert process.returncode == 130
    wait_until_none(tmp_path)


@pytest.mark.parametrize(
    ("number", "code", "where"),
    [
        (signal.SIGKILL, -9, "named"), pytest.param(signal.SIGKILL, -9, "own", marks=pytest.mark.full),
        pytest.param(signal.SIGINT, 130, "own", marks=pytest.mark.full),
        pytest.param(None, 3, "own", marks=pytest.mark.full),
    ],
    ids=["killed", "killed, with a Kafka", "Ctrl-C", "its Kafka is killed"],
)  # fmt: skip
def test_nothing_outlives_it(tmp_path, kafka, number, code, where):
    process = trains(tmp_path, *(["--bootstrap", kafka.bootstrap] if where == "named" else []))
    assert len(processes_in(tmp_path)) >= 6 + (where == "own")  # demo, train with four of its own, predict; Kafka
    for pid in [process.pid] if number is not None else broker_status(own_kafka(tmp_path)).pids:
        os.kill(pid, number or signal.SIGKILL)
    rest, errors = process.communicate(timeout=240)
    assert process.returncode == code, errors
    if number == signal.SIGINT:
        assert "summary" not in rest and errors == ""
    if number is None:
        assert "has ended; its log lies in" in errors
    wait_until_none(tmp_path)


def test_a_mistake_is_said_before_anything_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--json", "--set", "train.batch_row=7"])
    out, errors = capsys.readouterr()
    assert ended.value.code == 2 and out == ""
    assert "batch_rows" in errors
    assert list(tmp_path.iterdir()) == []
