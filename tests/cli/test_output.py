"""What a pipe gets: all of it, a row a line, no blanks at the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamtrain.cli.output import Output, table
from streamtrain.cli.train_view import TrainView
from streamtrain.job import settings_table

Run = Callable[..., Any]
LONG = "a cell of many words, " * 40 + "all of them"


def test_a_table_in_a_pipe_is_whole_and_not_padded(capsys: pytest.CaptureFixture[str]) -> None:
    Output(False).say(table(["name", "help"], [("a", LONG), ("b", "short"), ("c", None)]), "a line")
    assert capsys.readouterr().out.splitlines() == ["name  help", f"a     {LONG}", "b     short", "c", "a line"]


def test_settings_in_a_pipe_are_a_line_each(run: Run) -> None:
    lines = run("list", "settings").out.splitlines()
    assert len(lines) == 1 + len(settings_table())
    assert all(line == line.rstrip() for line in lines)
    for line, setting in zip(lines[1:], settings_table(), strict=True):
        assert line.startswith(setting.path) and line.endswith(setting.help)


def test_progress_in_a_pipe_is_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a-job-of-a-long-name" * 10
    with TrainView(Output(False), name) as view:
        view({"event": "started", "resumed": False, "version": 1})
    assert capsys.readouterr().err == f"starting {name} at snapshot 1, untrained\n"
