"""Tests of how a `fit` ends, and that a killed worker costs nothing: the bits are those of a run in which all live."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from waiting import wait_for

import streamtrain
from streamtrain import EarlyStopping, EarlyStoppingParallelTrainer, ParallelWrapper, _native, exits, fit
from streamtrain.compute.backends import choose
from streamtrain.errors import CheckFailed, StreamtrainError, UserMistake
from streamtrain.job.mistakes import JobMistakes
from tests.fitting.example import (
    ALONE,
    TABLES,
    Deaths,
    arena,
    columns,
    descriptors,
    dicts,
    kill_a_worker,
    killing_a_worker,
    same_bits,
    whole_fit,
    with_train,
    workers,
)
from tests.fitting.test_losses import OF_HEADS, both


def test_divergence_names_the_round_and_what_to_do() -> None:
    tables = {**TABLES, "columns": {**TABLES["columns"], "a": {}}, "optimizer": {"name": "sgd", "learning_rate": 1000}}
    given = columns(20_000)
    given["a"] *= 1e17
    with pytest.raises(CheckFailed, match=r"diverges in round \d+: .*lower optimizer.learning_rate, standardize") as no:
        streamtrain.fit(tables, given)
    assert "--restore" not in str(no.value)


def test_a_worker_that_has_to_refuse_says_why(own_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(UserMistake, match="_PRIORITY_CPU: expected a whole number"):
        patched.setenv("BACKEND_PRIORITY_CPU", "high")
        streamtrain.fit(with_train(workers=1), columns(100))
    with suppress(UserMistake):
        if choose("cuda"):
            pytest.skip("there is a GPU here")
    with pytest.raises(UserMistake, match=r"worker-0: backend cuda: .*; choose backend"):
        streamtrain.fit(with_train(workers=1, backend="cuda"), columns(100))


@pytest.fixture
def workers_run(own_workers: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Call it with a script that stands in the place of a worker's interpreter."""

    def run(script: str) -> None:
        (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "python").chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    return run


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kill -9 $$", r"workers died 10 times .*round 0 \(SIGKILL\); .* memory"),
        (
            f"read settings\necho 'ImportError: no such file'\nexit {exits.UNEXPECTED}",
            r"workers died 10 times .*exit code 70: ImportError: no such file",
        ),
    ],
    ids=["killed", "failed"],
)
def test_workers_that_die_again_and_again(workers_run: Callable[[str], None], script: str, message: str) -> None:
    workers_run(script)
    with pytest.raises(CheckFailed, match=message):
        streamtrain.fit(ALONE, columns(100))


def test_a_worker_that_gave_this_program_up_while_it_was_stopped_is_healed(
    workers_run: Callable[[str], None], tmp_path: Path
) -> None:
    whole = streamtrain.fit(ALONE, columns(1000))
    workers_run(f'mkdir {tmp_path}/once 2>/dev/null && exit {exits.RUN_OVER}\nexec {sys.executable} "$@"')
    died = Deaths()
    healed = streamtrain.fit(ALONE, columns(1000), on_event=died)
    assert f"exit code {exits.RUN_OVER}" in died and same_bits(whole, healed)


def test_a_run_that_has_to_leave_is_an_error() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield from dicts(columns(70_000))
        _native.SupervisorEnd(arena()).tell(_native.Stop.LEAVE)

    with pytest.raises(StreamtrainError, match="told to leave"):
        streamtrain.fit(TABLES, rows())


def test_ingest_that_leaves_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    leaving = SimpleNamespace(start=lambda: None, run=lambda timeout_s: _native.IngestStatus.LEAVE)
    monkeypatch.setattr(_native, "Ingest", lambda *_, **options: leaving)
    with pytest.raises(StreamtrainError, match=r"ingest: .* told to leave"):
        streamtrain.fit(TABLES, columns(100))


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="NumPy's pool has one thread where there is one core")
def test_a_worker_has_no_pool_of_numpys(own_workers: None) -> None:
    counts: list[int] = []

    def is_loaded(pid: int) -> bool:
        maps = Path(f"/proc/{pid}/maps").read_text()
        return "openblas" in maps and "arena" in maps  # which comes after NumPy

    def rows() -> Iterator[dict[str, Any]]:
        yield from dicts(columns(100))
        wait_for(lambda: workers() and all(map(is_loaded, workers())))
        counts.extend(len([*Path(f"/proc/{pid}/task").iterdir()]) for pid in workers())

    streamtrain.fit(ALONE, rows())
    assert counts == [1]


def test_beats_go_on_while_an_iterator_holds_python() -> None:
    """Workers leave a run that has not beaten for ten seconds; what holds Python for longer does not hold the beats."""
    given, died = columns(500), Deaths()

    def rows() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(dicts(given)):
            if number == 250:
                ctypes.PyDLL(None).sleep(12)
            yield row

    fitted = streamtrain.fit(TABLES, rows(), on_event=died)
    assert died == [] and same_bits(fitted, whole_fit(500))


def test_an_iterator_is_left_alone_once_it_is_over() -> None:
    taken: list[int] = []
    go_on = threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(dicts(columns(5000))):
            if number == 100:
                _native.SupervisorEnd(arena()).tell(_native.Stop.LEAVE)
                go_on.wait()
            taken.append(number)
            yield row

    try:
        with pytest.raises(StreamtrainError):
            streamtrain.fit(TABLES, rows())
    finally:
        go_on.set()
    for thread in threading.enumerate():
        if thread.name == "source":
            thread.join()
    assert 100 <= len(taken) <= 102


def test_no_event_comes_once_it_is_over() -> None:
    heard, over = threading.Event(), threading.Event()

    def slow(event: dict[str, Any]) -> None:
        if event["event"] == "progress" and not heard.is_set():
            heard.set()
            wait_for(lambda: not workers())
            streamtrain.fit(ALONE, columns(10))  # takes a while
            over.set()

    def rows() -> Iterator[dict[str, Any]]:
        yield from dicts(columns(10))
        heard.wait()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        streamtrain.fit(TABLES, rows(), on_event=slow)
    assert over.is_set()


@pytest.mark.parametrize("rows", [[], columns(0), iter(())], ids=["list", "arrays", "iterator"])
def test_no_rows(rows: Any) -> None:
    with pytest.raises(UserMistake, match="rows: expected at least one row, got none"):
        streamtrain.fit(TABLES, rows)


@pytest.mark.parametrize(
    ("count", "wrong", "message"),
    [
        (200, slice(None), r"none that can be used: .*expected 0, 1, true or false, got 5; mend them.*classes = …"),
        (5000, slice(0, None, 3), r"are dead letters.*mend those rows"),
    ],
)
def test_rows_that_cannot_be_used_name_no_topic(count: int, wrong: slice, message: str) -> None:
    """Rows of an array are checked before anything runs, rows of an iterator as they come."""
    given = columns(count)
    given["y"][wrong] = 5
    with pytest.raises(CheckFailed, match=message) as error:
        streamtrain.fit(TABLES, iter([given]))
    assert "streamtrain read" not in str(error.value)


def test_a_job_that_is_none_of_the_forms() -> None:
    with pytest.raises(UserMistake, match="job: expected a Job, the path of a job file, or its tables, got NoneType"):
        streamtrain.fit(None, columns(10))  # type: ignore[arg-type]
    with pytest.raises(JobMistakes, match="optimizer"):
        streamtrain.fit({**TABLES, "optimizer": {"name": "adan"}}, columns(10))


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

def hear(event):
    if event["event"] == "progress":
        print("trains", flush=True)

def watch(moment):
    print("trains", flush=True)
    time.sleep(0.3)

"""


def program(text: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM + text]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root)


@pytest.mark.parametrize(
    "call",
    [
        "fit(TABLES, endless(), on_event=hear)",
        "fit(TABLES, columns(500), epochs=10**6, every_epochs=1, callbacks=[watch], progress=True)",
    ],
    ids=["while it trains", "while training waits for a callback"],
)
def test_ctrl_c_ends_it_at_once_and_the_program_goes_on(call: str) -> None:
    running = program(
        f"try:\n    streamtrain.{call}\n"
        "except KeyboardInterrupt:\n    from tests.fitting.example import left\n"
        "    time.sleep(0.2)\n    print(left())\n"
    )
    assert running.stdout is not None and running.stdout.readline() == "trains\n"
    running.send_signal(signal.SIGINT)
    said, wrong = running.communicate(timeout=60)
    assert said.splitlines()[-1] == "[]" and running.returncode == 0, wrong


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (
            "import warnings\nwarnings.simplefilter('error')\nwarnings.simplefilter('always', ResourceWarning)\n"
            "streamtrain.fit(TABLES, columns(500))\n",
            0,
        ),
        ("streamtrain.fit(TABLES, 5)\n", 1),
        (
            "threading.Thread(target=streamtrain.fit, args=(TABLES, endless()), kwargs={'on_event': hear}, daemon=True)"
            ".start()\ntime.sleep(1)\n",
            0,
        ),
        ("streamtrain.fit(TABLES, iter(lambda: sys.exit(3), None))\n", 3),
    ],
    ids=["well", "an error", "a thread of its own", "sys.exit"],
)
def test_a_program_ends_however_its_fit_does(ending: str, code: int) -> None:
    running = program(ending)
    _, wrong = running.communicate(timeout=60)
    assert running.returncode == code and "terminate called" not in wrong and "unclosed" not in wrong, wrong


LAYERS = [{"dense": 16, "activation": "relu"}, {"dropout": 0.2}]
DROPOUT = {**TABLES, "model": {**TABLES["model"], "layers": LAYERS}}
# how it is trained, on which rows, the number of the row before which a worker dies, which worker
BY_A_ROW: dict[str, tuple[Any, Any, int, int]] = {
    "fit": (partial(fit, TABLES), columns(6_000), 4_000, 0),
    "dropout, whose numbers go by seed, round and place in it": (partial(fit, DROPOUT), columns(6_000), 4_500, 0),
    "ParallelWrapper": (ParallelWrapper(TABLES, averaging_frequency=2).fit, columns(6_000), 4_500, 2),
}
# the job, its rows, further arguments, at which event of training a worker dies, which worker
BY_A_CALLBACK: dict[str, tuple[Any, Any, Any, Any, int]] = {
    "epochs": (TABLES, columns(1_500), {"epochs": 3, "every_epochs": 2}, lambda moment: moment.epoch == 2, 1),
    "heads": (OF_HEADS, both(3_000), {"every_rounds": 10}, lambda moment: moment.round == 29, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_A_ROW)
def test_while_rows_come(name: str) -> None:
    train, rows, at, worker = BY_A_ROW[name]
    died = Deaths()
    fitted = train(killing_a_worker(dicts(rows), at, worker), on_event=died)
    assert died[0] == "SIGKILL" and same_bits(fitted, train(rows))


@pytest.mark.parametrize("name", BY_A_CALLBACK)
def test_from_a_callback(name: str) -> None:
    job, rows, more, when, worker = BY_A_CALLBACK[name]
    died = Deaths()
    callback = lambda moment: kill_a_worker(worker) if when(moment) else None  # noqa: E731
    fitted = fit(job, rows, callbacks=[callback], on_event=died, **more)
    assert died[0] == "SIGKILL" and same_bits(fitted, fit(job, rows, **more))


def test_early_stopping_ends_at_the_same_round() -> None:
    stopping = EarlyStopping(no_improvement=2, least_improvement=0.02, every_rounds=20)
    trainer = EarlyStoppingParallelTrainer(stopping, TABLES, columns(3000), workers=2, averaging_frequency=3)
    died, one = Deaths(), trainer.fit()
    other = trainer.fit(callbacks=[lambda moment: kill_a_worker() if moment.round == 59 else None], on_event=died)
    assert died[0] == "SIGKILL" and one.reason == "no_improvement"
    assert [each.score for each in one.evaluations] == [each.score for each in other.evaluations]
    assert same_bits(one.best_model, other.best_model) and same_bits(one.model, other.model)


def test_dropout_goes_by_the_seed_and_predictions_have_none() -> None:
    rows, fresh = columns(6_000), columns(500, seed=9)
    fitted = fit(DROPOUT, rows)
    assert not same_bits(fitted, fit({**DROPOUT, "train": with_train(seed=2)["train"]}, rows))
    answers = fitted.predict(fresh)
    assert answers == fitted.predict(fresh)
    found = np.array([answer["prediction"] > 0.5 for answer in answers])
    assert (found == fresh["y"].astype(bool)).mean() > 0.9
