"""The screen of `streamtrain demo`, which is that of `status` with the traffic, a plain line, and the summary."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamtrain.cli.output import SCORES, age_text
from streamtrain.cli.quality_table import score
from streamtrain.cli.status_view import status_view
from streamtrain.demo.flights import date_text, flight_text
from streamtrain.demo.traffic import Document, Traffic

QUESTION = "Will it arrive more than 15 minutes late?"
LEARNING = Text("Each flight is predicted, then learned; beside it the constant prediction.", "dim")
NAME_COLUMNS = 13  # of the summary


def screen(traffic: Traffic) -> RenderableType:
    """The live screen."""
    head = Table.grid(expand=True, padding=(0, 2, 0, 0))
    head.add_column(ratio=1)
    head.add_column(justify="right")
    date = date_text(traffic.flights, max(0, traffic.sent - 1))
    head.add_row(Text(QUESTION, "bold"), Text(f"{date}, 2013 · {traffic.seconds:.0f} s", "dim"))
    sent = f"{traffic.sent:,} of {traffic.rows:,} flights sent"
    head.add_row(ProgressBar(total=traffic.rows, completed=traffic.sent), sent)
    figures = traffic.to_dict()
    delays = _delays(figures["answer_delay_p50_s"], figures["answer_delay_p99_s"])
    answered = f"{traffic.answers:,} of {traffic.requests:,}, {figures['answers_per_s']:,.0f}/s{delays}"
    more: list[tuple[str, object]] = [("predictions", answered)]
    if traffic.newest is not None:
        row, probability = traffic.newest
        text = Text(f"{flight_text(traffic.flights, row)}: ", no_wrap=True, overflow="ellipsis")
        text.append(f"late with {probability:.0%}", "yellow" if probability >= 0.5 else "green")
        truth = {0.0: "was on time", 1.0: "was late"}.get(traffic.flights["late"][row], "never arrived")
        more.append(("newest answer", text.append(f", {truth}", "dim")))
    status = {**traffic.status, "dead_letters": {}}  # the line of the rows counts them
    return Padding(Group(head, LEARNING, "", status_view(status, more)), (1, 1, 0, 1))


def _delays(p50_s: float | None, p99_s: float | None) -> str:
    if p50_s is None or p99_s is None:
        return ""
    p50, p99 = (f"{delay_s * 1_000:,.0f} ms" if delay_s < 10 else f"{delay_s:.0f} s" for delay_s in (p50_s, p99_s))
    return f", p50 {p50}, p99 {p99}"


def plain(figures: Document) -> str:
    """The same in a line, for pipes and logs."""
    seconds, total, window = f"{figures['seconds']:5.1f} s", figures["total"], figures["window"]
    if not total:
        return f"{seconds}  {figures['rows_sent']:,} flights sent, none learned yet"
    loss, auc = (f"{score(window, key)} ({score(total, key)} in total)" for key in ("log_loss", "auc"))
    return (
        f"{seconds}  {figures['rows_trained']:,} rows, {figures['rows_per_s']:,.0f}/s, lag {figures['lag']:,}; "
        f"snapshot {figures['version']}, {age_text(figures['age_s'])} old; log loss {loss}, "
        f"constant {score(total, 'constant_log_loss')}; AUC {auc}; {figures['answers_per_s']:,.0f} predictions/s"
    )


def show_summary(console: Console, summary: Document, streamed_s: float) -> None:
    """Shows the results; where the terminal is narrow, all but commands and problems is cut."""
    console.print("", _counts(summary, streamed_s), "", soft_wrap=False, no_wrap=True, overflow="ellipsis")
    checks, predictions = summary["verify"]["checks"], summary["predictions"]
    for check in checks:
        line = Text(f"{'verify' if check is checks[0] else '':{NAME_COLUMNS}}", "bold")
        line.append(*(("ok      ", "green") if check["ok"] else ("FAILED  ", "bold red")))
        line.append(f"{check['name']:14}{check['promise']}", "dim" if check["ok"] else "red")
        console.print(line, soft_wrap=False, no_wrap=True, overflow="ellipsis")
    problems = [f"{check['name']}: {problem}" for check in checks for problem in check["problems"][:5]]
    rows = dict(summary["rows"])
    if (sent := rows.pop("produced")) != (accounted := sum(rows.values())):
        problems.append(f"{sent:,} rows sent, {accounted:,} accounted for")
    if missing := predictions["requests"] - predictions["answers"]:
        problems.append(f"{missing:,} requests without an answer")
    for problem in problems:
        console.print(f"FAILED {problem}", markup=False)
    console.print("", Text("next", "bold"), sep="\n")
    for following in summary["next"]:
        console.print(Text(f"  {following['text']}", "dim"), f"  {following['command']}", sep="\n")


def _counts(summary: Document, streamed_s: float) -> Table:
    rows, quality, predictions = summary["rows"], summary["quality"], summary["predictions"]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=NAME_COLUMNS - 2, style="bold")
    table.add_row("flights", f"{rows['produced']:,} streamed in {streamed_s:.0f} s, {rows['trained']:,} learned")
    table.add_row("left out", f"{rows['filtered']:,} never arrived, {rows['dead_lettered']:,} damaged: dead letters")
    for title, key in SCORES:
        if key in quality:
            constant = score(quality, f"constant_{key}")
            table.add_row(title, f"{score(quality, key)}, the constant prediction's {constant}")
    table.add_row("snapshots", f"{summary['snapshots']:,} published")
    errors = f", {predictions['errors']:,} with an error" if predictions["errors"] else ""
    answered = f"{predictions['answers']:,} of {predictions['requests']:,} requests answered{errors}"
    table.add_row("predictions", answered + _delays(predictions["delay_p50_s"], predictions["delay_p99_s"]))
    return table
