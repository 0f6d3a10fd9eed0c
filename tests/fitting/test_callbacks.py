"""What a program hears of its `fit` at the end of rounds, how it ends it, and the history that is left."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain.errors import UserMistake
from streamtrain.fitting.callbacks import Moment
from tests.fitting.example import TABLES, columns, same_bits
from tests.fitting.left import workers

# 64 rows a batch, 384 a round; on a busy machine a second may pass, after which one is published that nobody asked for
EVEN = {**TABLES, "train": {**TABLES["train"], "batch_growth": "off"}, "publish": {"interval": "10m"}}


def test_moments_are_the_same_in_every_run_and_change_no_bit() -> None:
    given = columns(5000)
    plain = streamtrain.fit(EVEN, given, epochs=2)
    seen: list[list[tuple[int, int, int]]] = []
    for _ in range(2):
        found: list[tuple[int, int, int]] = []
        fitted = streamtrain.fit(
            EVEN, given, epochs=2, every_rounds=5,
            callbacks=[lambda moment, found=found: found.append((moment.round, moment.epoch, moment.rows))],
        )  # fmt: skip
        assert same_bits(plain, fitted)
        seen.append(found)
    assert seen[0] == seen[1]
    assert seen[0] == [(4, 0, 1920), (9, 0, 3840), (14, 1, 5384), (19, 1, 7304), (24, 1, 9224), (27, 2, 10_000)]


def test_a_moments_model_is_that_of_its_round() -> None:
    given = columns(3840)
    models: list[streamtrain.Fitted] = []
    fitted = streamtrain.fit(EVEN, given, every_rounds=5, callbacks=[lambda moment: models.append(moment.model())])
    half = streamtrain.fit(EVEN, {name: cells[:1920] for name, cells in given.items()})
    assert same_bits(models[0], half) and same_bits(models[1], fitted)
    assert models[0].predict({"a": 1, "b": 1, "colour": "red"}) == half.predict({"a": 1, "b": 1, "colour": "red"})


class All:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_begin(self, job: streamtrain.Job) -> None:
        self.told.append(job.name)

    def on_epoch(self, moment: Moment) -> None:
        self.told.append((moment.epoch, moment.ends_epoch, moment.rows, len(moment.history)))

    def on_end(self, fitted: streamtrain.Fitted) -> None:
        self.told.append(fitted)


def test_an_object_hears_what_it_has_names_for() -> None:
    heard = All()
    fitted = streamtrain.fit(TABLES, columns(1000), epochs=3, callbacks=[heard])
    assert heard.told[0] == "fit" and heard.told[-1] is fitted
    assert [told[:3] for told in heard.told[1:-1]] == [(1, True, 1000), (2, True, 2000), (3, True, 3000)]


def test_a_callback_stops_training_where_it_says() -> None:
    given = columns(50_000)

    def enough(moment: Moment) -> None:
        if moment.rows >= 3840:
            moment.stop("seen enough")

    told: list[str] = []
    fitted = streamtrain.fit(
        EVEN, given, every_rounds=5, callbacks=[enough], on_event=lambda event: told.append(event["event"])
    )
    assert fitted.stopped == "seen enough" and fitted.manifest.rows_seen == 3840 and told[-1] == "ended"
    assert same_bits(fitted, streamtrain.fit(EVEN, {name: cells[:3840] for name, cells in given.items()}))


def test_what_a_callback_raises_ends_it() -> None:
    def broken(moment: Moment) -> None:
        raise ArithmeticError("no such figure")

    for more in ({}, {"every_rounds": 3}, {"every_epochs": 1}):
        with pytest.raises(ArithmeticError, match="no such figure"):
            streamtrain.fit(TABLES, columns(5000), callbacks=[broken], **more)  # type: ignore[arg-type]
        assert workers() == []


def test_what_is_no_callback() -> None:
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
    code = (
        "import os, sys\n"
        "import streamtrain\n"
        "from tests.fitting.example import TABLES, columns\n"
        "given = columns(3000)\n"
        "streamtrain.fit(TABLES, given, progress=True)\n"
        "os.dup2(int(sys.argv[1]), 2)\n"
        "streamtrain.fit(TABLES, given, epochs=2, progress=True)\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "COLUMNS": "100"}
    screen, terminal = pty.openpty()
    drawn: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(screen, drawn))  # a terminal that nobody reads holds its writer
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


def read_all(screen: int, drawn: list[bytes]) -> None:
    """Read what a terminal shows until no program has it open: Linux tells that by an error."""
    with contextlib.suppress(OSError):
        while piece := os.read(screen, 4096):
            drawn.append(piece)
