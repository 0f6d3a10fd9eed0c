"""A program's callbacks at the end of rounds, how it ends a `fit` by them, and the history that is left."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain.errors import UserMistake
from streamtrain.fitting.callbacks import Moment
from tests.fitting.example import TABLES, columns, same_bits, with_train
from tests.fitting.left import workers

# 64 rows a batch, 384 a round; on a busy machine a second may pass, after which one is published that nobody asked for
EVEN = {**with_train(batch_growth="off"), "publish": {"interval": "10m"}}


def test_moments_are_the_same_in_every_run_and_change_no_bit() -> None:
    given = columns(5000)
    plain = streamtrain.fit(EVEN, given, epochs=2)
    for _ in range(2):
        found: list[Any] = []
        callback = lambda moment, found=found: found.append((moment.round, moment.epoch, moment.rows))  # noqa: E731
        assert same_bits(plain, streamtrain.fit(EVEN, given, epochs=2, every_rounds=5, callbacks=[callback]))
        assert found == [(4, 0, 1920), (9, 0, 3840), (14, 1, 5384), (19, 1, 7304), (24, 1, 9224), (27, 2, 10_000)]


def test_a_moments_model_is_that_of_its_round() -> None:
    given = columns(3840)
    models: list[streamtrain.Fitted] = []
    fitted = streamtrain.fit(EVEN, given, every_rounds=5, callbacks=[lambda moment: models.append(moment.model())])
    half = streamtrain.fit(EVEN, {name: cells[:1920] for name, cells in given.items()})
    assert same_bits(models[0], half) and same_bits(models[1], fitted)
    assert models[0].predict({"a": 1, "b": 1, "colour": "red"}) == half.predict({"a": 1, "b": 1, "colour": "red"})


def test_an_object_hears_what_it_has_names_for() -> None:
    heard: list[Any] = []
    callback = SimpleNamespace(
        on_begin=lambda job: heard.append(job.name),
        on_epoch=lambda moment: heard.append((moment.epoch, moment.ends_epoch, moment.rows)),
        on_end=heard.append,
    )
    fitted = streamtrain.fit(TABLES, columns(1000), epochs=3, callbacks=[callback])
    assert heard == ["fit", (1, True, 1000), (2, True, 2000), (3, True, 3000), fitted] and heard[-1] is fitted


def test_a_callback_stops_training_where_it_says() -> None:
    given = columns(50_000)

    def enough(moment: Moment) -> None:
        if moment.rows >= 3840:
            moment.stop("seen enough")

    events: list[Any] = []
    fitted = streamtrain.fit(EVEN, given, every_rounds=5, callbacks=[enough], on_event=events.append)
    assert fitted.stopped == "seen enough" and fitted.manifest.rows_seen == 3840 and events[-1]["event"] == "ended"
    assert same_bits(fitted, streamtrain.fit(EVEN, {name: cells[:3840] for name, cells in given.items()}))


def test_a_callback_that_raises_ends_it_and_one_that_is_none_too() -> None:
    def broken(moment: Moment) -> None:
        raise ArithmeticError("no such figure")

    for more in ({}, {"every_rounds": 3}, {"every_epochs": 1}):
        with pytest.raises(ArithmeticError, match="no such figure"):
            streamtrain.fit(TABLES, columns(5000), callbacks=[broken], **more)  # type: ignore[arg-type]
        assert workers() == []
    with pytest.raises(UserMistake, match=r"callbacks: expected functions of a moment, or objects with on_begin.* int"):
        streamtrain.fit(TABLES, columns(10), callbacks=[3])


def test_the_history_has_a_row_for_each_publication() -> None:
    tables = {**EVEN, "optimizer": {**EVEN["optimizer"], "schedule": {"name": "inverse", "gamma": 0.01, "power": 1.0}}}
    fitted = streamtrain.fit(tables, columns(3840), epochs=2, every_rounds=5, callbacks=[lambda moment: None])
    frame = fitted.history.frame()
    assert frame["rows"].tolist() == [1920, 3840, 5760, 7680] and frame["round"].tolist() == [4, 9, 14, 19]
    assert frame["epoch"].tolist() == [0, 1, 1, 2] and frame["steps"].tolist() == [15, 30, 45, 60]
    assert (np.diff(frame["learning_rate"]) < 0).all() and (np.diff(frame["seconds"]) > 0).all()
    assert (np.diff(frame["loss"]) < 0).all() and (frame["log_loss"] < frame["constant_log_loss"]).all()
    mean = (frame["loss"]).mean()  # every row weighs the same on average
    assert abs(mean - fitted.manifest.metrics["total"]["log_loss"]) < 0.01
    plain = streamtrain.fit(tables, columns(3840)).history
    assert len(plain) == 1 and plain[0].rows == 3840


def test_a_picture_of_the_history() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    history = streamtrain.fit(EVEN, columns(3840), every_rounds=2, callbacks=[lambda moment: None]).history
    upper, lower = history.plot("log_loss", "auc").axes
    assert [line.get_label() for line in upper.lines] == ["log_loss", "constant_log_loss"]
    assert upper.lines[0].get_xdata().tolist() == [768, 1536, 2304, 3072, 3840]
    assert lower.lines[0].get_ydata().tolist() == history.frame()["auc"].tolist()
    assert len(history.plot().axes) == 1
    with pytest.raises(UserMistake, match=r"expected one of version, round, .* got 'los'"):
        history.plot("los")


def test_a_bar_is_shown_on_a_terminal_alone() -> None:
    code = """import os, sys, streamtrain
from tests.fitting.example import TABLES, columns
streamtrain.fit(TABLES, columns(3000), progress=True)
os.dup2(int(sys.argv[1]), 2)
streamtrain.fit(TABLES, columns(3000), epochs=2, progress=True)
"""
    environment = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "COLUMNS": "100"}
    drawn: list[bytes] = []

    def read_all() -> None:
        with contextlib.suppress(OSError):  # by which Linux tells that no program has the terminal open
            while piece := os.read(screen, 4096):
                drawn.append(piece)

    screen, terminal = pty.openpty()
    reader = threading.Thread(target=read_all)  # a terminal that nobody reads holds its writer
    reader.start()
    arguments = [sys.executable, "-P", "-c", code, str(terminal)]
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, env=environment, timeout=120, pass_fds=[terminal]
        )
    finally:
        os.close(terminal)
        reader.join()
        os.close(screen)
    text = b"".join(drawn).decode()
    assert done.returncode == 0 and done.stderr == "", done.stderr + text
    assert "rows" in text and "/6000" in text
