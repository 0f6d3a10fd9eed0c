"""How `fit` ends where it does not end well: an error that says what to do, and nothing that stays (see conftest)."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import wait_for

import streamtrain
from streamtrain import _native, exits
from streamtrain.compute.backends import choose
from streamtrain.errors import CheckFailed, StreamtrainError, UserMistake
from tests.fitting.example import TABLES, columns, dicts, same_bits
from tests.fitting.left import arena, descriptors, workers

ALONE = {**TABLES, "train": {**TABLES["train"], "workers": 1}}


def test_divergence_names_the_round_and_what_to_do() -> None:
    tables = {**TABLES, "columns": {**TABLES["columns"], "a": {}}, "optimizer": {"name": "sgd", "learning_rate": 1000}}
    given = columns(20_000)
    given["a"] *= 1e30
    with pytest.raises(CheckFailed, match=r"diverges in round \d+: .*lower optimizer.learning_rate, standardize") as no:
        streamtrain.fit(tables, given)
    assert "--restore" not in str(no.value)


def test_a_worker_that_has_to_refuse_says_why() -> None:
    if _has_gpu():
        pytest.skip("there is a GPU here")
    with pytest.raises(UserMistake, match=r"worker-0: backend cuda: .*; choose backend"):
        streamtrain.fit({**ALONE, "train": {**ALONE["train"], "backend": "cuda"}}, columns(100))


def _has_gpu() -> bool:
    try:
        return bool(choose("cuda"))
    except UserMistake:
        return False


def test_workers_that_die_again_and_again(own_workers: None) -> None:
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.01):
            for pid in workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        with pytest.raises(CheckFailed, match=r"workers died 10 times .*round 0 \(SIGKILL\); .* memory"):
            streamtrain.fit(ALONE, columns(100))
    finally:
        over.set()
        killing.join()


def test_workers_that_fail_say_why_in_the_error(
    own_workers: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "python"
    broken.write_text(f"#!/bin/sh\nread settings\necho 'ImportError: no such file'\nexit {exits.UNEXPECTED}\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(CheckFailed, match=r"workers died 10 times .*exit code 70: ImportError: no such file"):
        streamtrain.fit(ALONE, columns(100))


def test_a_worker_that_gave_this_program_up_while_it_was_stopped_is_healed(
    own_workers: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    leaving = tmp_path / "python"
    leaving.write_text(
        f"#!/bin/sh\nmkdir {tmp_path}/once 2>/dev/null && exit {exits.RUN_OVER}\nexec {sys.executable} \"$@\"\n"
    )
    leaving.chmod(0o755)
    whole = streamtrain.fit(TABLES, columns(1000))
    monkeypatch.setattr(sys, "executable", str(leaving))
    died = []
    healed = streamtrain.fit(TABLES, columns(1000), on_event=lambda event: died.append(event.get("how")))
    assert f"exit code {exits.RUN_OVER}" in died and same_bits(whole, healed)


def test_a_run_that_is_told_to_leave_is_an_error() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield from dicts(columns(70_000))
        _native.SupervisorEnd(arena()).tell(_native.Stop.LEAVE)

    with pytest.raises(StreamtrainError, match="told to leave"):
        streamtrain.fit(TABLES, rows())


def test_ingest_that_leaves_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaving:
        def __init__(self, *_: object, **options: object) -> None: ...

        def start(self) -> None: ...

        def run(self, timeout_s: float) -> _native.IngestStatus:
            return _native.IngestStatus.LEAVE

    monkeypatch.setattr(_native, "Ingest", Leaving)
    with pytest.raises(StreamtrainError, match=r"ingest: .* told to leave"):
        streamtrain.fit(TABLES, columns(100))


def test_beats_go_on_while_an_iterator_holds_python() -> None:
    """Workers leave a run that has not beaten for ten seconds; what holds Python for longer does not hold the beats."""
    given = columns(500)
    died = []

    def rows() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(dicts(given)):
            if number == 250:
                ctypes.PyDLL(None).sleep(12)
            yield row

    fitted = streamtrain.fit(TABLES, rows(), on_event=lambda event: died.append(event.get("how")))
    assert set(died) == {None}
    assert same_bits(fitted, streamtrain.fit(TABLES, given))


def test_an_iterator_is_left_alone_once_it_is_over() -> None:
    taken: list[int] = []
    go_on, over = threading.Event(), threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(dicts(columns(5000))):
            if number == 100:
                _native.SupervisorEnd(arena()).tell(_native.Stop.LEAVE)
                go_on.wait()
            if number > 100:
                taken.append(number)
            yield row
        over.set()

    try:
        with pytest.raises(StreamtrainError):
            streamtrain.fit(TABLES, rows())
    finally:
        go_on.set()
    for thread in threading.enumerate():
        if thread.name == "source":
            thread.join()
    assert len(taken) <= 1 and not over.is_set()


def test_no_event_comes_once_it_is_over() -> None:
    told, over = threading.Event(), threading.Event()

    def slow(event: dict[str, Any]) -> None:
        if event["event"] == "progress" and not told.is_set():
            told.set()
            wait_for(lambda: not workers())
            streamtrain.fit(ALONE, columns(10))  # takes a while
            over.set()

    def rows() -> Iterator[dict[str, Any]]:
        yield from dicts(columns(10))
        told.wait()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        streamtrain.fit(TABLES, rows(), on_event=slow)
    assert over.is_set()


@pytest.mark.parametrize("rows", [[], columns(0), iter(())], ids=["list", "arrays", "iterator"])
def test_no_rows(rows: Any) -> None:
    with pytest.raises(UserMistake, match="rows: expected at least one row, got none"):
        streamtrain.fit(TABLES, rows)


def test_no_row_that_can_be_used() -> None:
    given = columns(200)
    given["y"][:] = 5
    told = r"none that can be used: .*expected 0, 1, true or false, got 5; mend them.*classes = …"
    with pytest.raises(CheckFailed, match=told):
        streamtrain.fit(TABLES, iter([given]))  # of an array that is at hand, this is told before anything runs


def test_too_many_dead_rows_name_no_topic() -> None:
    given = columns(5000)
    given["y"][::3] = 5
    with pytest.raises(CheckFailed, match="mend those rows") as error:
        streamtrain.fit(TABLES, iter([given]))
    assert "streamtrain read" not in str(error.value)


def test_a_job_that_is_none_of_the_forms() -> None:
    with pytest.raises(UserMistake, match="job: expected a Job, the path of a job file, or its tables, got NoneType"):
        streamtrain.fit(None, columns(10))  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [[], iter([{**columns(5000), "y": np.full(5000, 5)}])], ids=["no rows", "dead rows"])
def test_an_error_that_is_kept_keeps_no_memory(rows: Any) -> None:
    gc.disable()
    try:
        with pytest.raises(StreamtrainError) as kept:
            streamtrain.fit(TABLES, rows)
        wait_for(lambda: not descriptors())  # the publisher's thread is about to end
        assert kept.value is not None
    finally:
        gc.enable()


PROGRAM = """
import signal, sys, threading, time
import streamtrain
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
from tests.fitting.example import TABLES, columns, dicts

def endless():
    while True:
        yield from dicts(columns(100))

def told(event):
    if event["event"] == "progress":
        print("trains", flush=True)

"""


def program(text: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM + text]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root)


def test_ctrl_c_ends_it_at_once_and_the_program_goes_on() -> None:
    running = program(
        "try:\n"
        "    streamtrain.fit(TABLES, endless(), on_event=told)\n"
        "except KeyboardInterrupt:\n"
        "    from tests.fitting.left import left\n"
        "    time.sleep(0.2)\n"
        "    print(left())\n"
    )
    assert running.stdout is not None and running.stdout.readline() == "trains\n"
    running.send_signal(signal.SIGINT)
    told, wrong = running.communicate(timeout=60)
    assert told.splitlines()[-1] == "[]" and running.returncode == 0, wrong


def test_a_fit_that_ends_well_leaves_no_file_open() -> None:
    strict = "import warnings\nwarnings.simplefilter('error')\nwarnings.simplefilter('always', ResourceWarning)\n"
    running = program(f"{strict}streamtrain.fit(TABLES, columns(500))\n")
    _, wrong = running.communicate(timeout=60)
    assert running.returncode == 0 and "unclosed" not in wrong, wrong


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("streamtrain.fit(TABLES, 5)\n", 1),
        (
            "threading.Thread(target=streamtrain.fit, args=(TABLES, endless()), kwargs={'on_event': told}, daemon=True)"
            ".start()\ntime.sleep(1)\n",
            0,
        ),
        ("streamtrain.fit(TABLES, iter(lambda: sys.exit(3), None))\n", 3),
    ],
    ids=["an error", "a thread of its own", "sys.exit"],
)
def test_a_program_whose_fit_does_not_end_well_ends(ending: str, code: int) -> None:
    running = program(ending)
    _, wrong = running.communicate(timeout=60)
    assert running.returncode == code and "terminate called" not in wrong, wrong
