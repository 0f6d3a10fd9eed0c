"""The lines that commands write, to people, to a pipe and as JSON; the view of `train`."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from streamtrain.cli.output import Output, count_text, table
from streamtrain.cli.train_view import TrainView
from streamtrain.job import settings_table
from tests.cli.conftest import Run

EVENTS: list[dict[str, Any]] = [
    {"event": "started", "resumed": True, "version": 812, "rows": 3_400_000, "run": 2},
    {"event": "published", "version": 813, "rows": 3_400_010,
     "metrics": {"total": {"log_loss": 0.25, "constant_log_loss": 0.5, "auc": 0.875}, "window": None}},
    {"event": "progress", "rows": 10, "unreachable": False},
    {"event": "worker_died", "worker": 1, "how": "SIGKILL", "round": 4, "slot": 9},
    {"event": "restarting", "reason": "ingest was killed by SIGKILL"},
    {"event": "ended", "version": 813, "rows": 3_400_010, "dead_letters": {"a": 2, "b": 1}},
]  # fmt: skip


def viewed(*arguments: Any) -> None:
    with TrainView(*arguments) as view:
        for event in EVENTS:
            view(event)


def test_events_are_lines_for_people_logs_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    viewed(Output(False), "flights")
    lines = [
        "resuming flights at snapshot 812, 3.4 M rows",
        "3,400,010 rows, 0/s, snapshot 813, log_loss 0.2500 (constant 0.5000), auc 0.8750",
        "flights: snapshot 813, 3,400,010 rows, 3 rows dead lettered",
    ]
    assert capsys.readouterr() == ("", "".join(f"{line}\n" for line in lines))
    logs: list[str] = []
    viewed(Output(False), "flights", logs.append)
    assert logs == lines and capsys.readouterr() == ("", "")
    viewed(Output(True), "flights")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == EVENTS


WHY = "early stopping, no_improvement: 2 evaluations were not better than 0.3; the best is snapshot 7, log_loss 0.3"
LONG_NAME = "a-job-of-a-long-name" * 10
RESTORED = {"resumed": True, "restored": 3, "version": 9, "rows": 12}


@pytest.mark.parametrize(
    ("name", "event", "text"),
    [
        (LONG_NAME, {"resumed": False, "version": 1}, f"starting {LONG_NAME} at snapshot 1, untrained"),
        ("flights", {"resumed": True, "version": 9, "rows": 12}, "resuming flights at snapshot 9, 12 rows"),
        ("flights", RESTORED, "restored snapshot 3 of flights as 9, 12 rows"),
        ("flights", {"event": "stopped_early", "why": WHY, "reason": "no_improvement", "best_version": 7},
         f"flights: {WHY}"),
    ],
)  # fmt: skip
def test_an_event_is_a_line(capsys: pytest.CaptureFixture[str], name: str, event: dict[str, Any], text: str) -> None:
    with TrainView(Output(False), name) as view:
        view({"event": "started", **event})
    assert capsys.readouterr().err == f"{text}\n"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (9_999, "9,999"), (12_345, "12 k"), (3_400_000, "3.4 M"), (2_500_000_000, "2.5 G")]
)
def test_counts(count: int, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize("width", [50, 80, 200])
def test_no_figure_is_broken_on_a_terminal(width: int) -> None:
    scores = {"log_loss": 0.2345, "constant_log_loss": 0.5432, "auc": 0.8765, "accuracy": 0.9123, "rows": 10_000}
    view = TrainView(Output(False), "flights")
    view({**EVENTS[1], "metrics": {"total": scores, "window": scores}})
    screen = Console(width=width, file=io.StringIO(), force_terminal=False)
    screen.print(view._panel(EVENTS[2]))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    figures = ["0.2345", "0.5432"] if width == 50 else ["0.2345", "0.5432", "0.8765", "0.9123"]
    assert all(shown.count(figure) == 2 for figure in figures), shown


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
