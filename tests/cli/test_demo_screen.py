"""The demo's screen and summary: readable on a terminal of 80 columns, commands never cut."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from streamtrain.checks.verify.report import Check, Report
from streamtrain.cli.demo_screen import ending, plain, screen
from streamtrain.cli.demo_view import DemoView
from streamtrain.cli.output import Output
from streamtrain.cli.quality import bars
from streamtrain.demo.answers import Told
from streamtrain.demo.folder import Folder
from streamtrain.demo.standing import Standing
from streamtrain.demo.summary import Summary, next_commands

SCORES = {
    "log_loss": 0.2774, "constant_log_loss": 0.5483, "auc": 0.9019, "constant_auc": 0.5, "accuracy": 0.8998,
    "constant_accuracy": 0.7629, "rows": 10_752,
}  # fmt: skip


@pytest.fixture
def standing() -> Standing:
    told = Told("EV 4693 EWR to MHT, left 1 min early", 0.05, False, 62)
    worse = {**SCORES, "log_loss": 0.4}
    return Standing(
        rows=336_776, sent=202_720, date="Aug 8", read=200_200, trained=193_137, version=62, event_age_s=0.1,
        scores=SCORES, windows=[worse, SCORES], rows_per_s=5_513, asked=4_054, answered=4_054, answers_per_s=112,
        delay_p50_s=0.028, delay_p99_s=0.127, newest_answer=told, positions=[[199_874, 0]], dead={"$: cut": 9},
    )  # fmt: skip


@pytest.fixture
def summary(standing: Standing) -> Summary:
    checks = [Check("tiling", "the ranges tile every partition: no row trained twice, none skipped at all, ever")]
    report = Report("flights", checks, rows_trained=193_137, rows_dead=9, rows_filtered=9_574)
    commands = next_commands("/a/long/way/to/it/.venv/bin/streamtrain", Folder(Path("streamtrain-demo")), 62, True)
    return Summary("flights", standing, report, 60.0, 1.0, 6.5, Folder(), commands)


def shown(part: object, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, height=24).print(part)
    return out.getvalue()


def test_the_screen_fits_80_by_24(standing):
    lines = shown(screen(standing)).splitlines()
    assert len(lines) <= 20 and all(len(line) <= 80 for line in lines)
    text = "\n".join(line.rstrip() for line in lines)
    for part in (
        "Aug 8, 2013", "202,720 of 336,776 flights sent", "193,137 learned", "5,513 rows/s", "lag 2,520 rows",
        "version 62", "with rows 0.1 s old", "4,054 of 4,054", "112/s", "p50 28 ms, p99 127 ms",
        "6,728 never arrived", "9 dead letters", "last 10,752", "0.2774     0.5483", "73% … 51%",
        "EV 4693 EWR to MHT, left 1 min early: late with 5%, was on time",
    ):  # fmt: skip
        assert part in text, f"{part}\n{text}"


def test_before_anything_is_trained():
    text = shown(screen(Standing(rows=10)))
    assert "none yet" in text and "newest answer" not in text
    assert plain(Standing(rows=10)).endswith("0 flights sent, none learned yet")


def test_a_plain_line(standing):
    line = plain(standing)
    assert "log loss 0.2774 (0.2774 in total), constant 0.5483" in line and "112 predictions/s" in line


def test_bars():
    assert bars([0.1, 0.2, 0.3]) == "▁▅█" or bars([0.1, 0.2, 0.3]) == "▁▄█"
    assert bars([0.5]) == "▁"


def test_the_summary_cuts_no_command(summary, capsys):
    assert summary.ok
    view = DemoView(Output(as_json=False))
    view._out.console = Console(width=60, soft_wrap=True, highlight=False)
    view.end(summary)
    lines = capsys.readouterr().out.splitlines()
    for following in summary.next_commands:
        assert f"  {following.command}" in lines
    assert any(line.startswith("verify       ok      tiling") and line.endswith("…") for line in lines)


def test_what_is_wrong_is_said(summary):
    summary.standing.sent += 3
    summary.standing.asked += 2
    summary.report.checks[0].problems.append("flights.records[0]: rows 3 to 4 twice")
    assert not summary.ok
    text = "\n".join(str(part) for part in ending(summary))
    assert "FAILED tiling: flights.records[0]: rows 3 to 4 twice" in text
    assert "rows sent, 202,720 accounted for" in text and "2 requests without an answer" in text
