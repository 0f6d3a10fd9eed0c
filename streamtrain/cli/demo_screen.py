"""The screen of `streamtrain demo`: the live one, a plain line, and the summary at the end."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streamtrain.cli.output import age_text
from streamtrain.cli.quality import SCORES, quality_table, score, trend, window_name
from streamtrain.demo.standing import Standing
from streamtrain.demo.summary import Summary

QUESTION = "Will it arrive more than 15 minutes late?"
LEARNING = Text("Each flight is predicted, then learned; beside it the constant prediction:", "dim")
NAME_COLUMNS = 13  # of the summary


def screen(standing: Standing) -> RenderableType:
    """The live screen."""
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(Text(QUESTION, "bold"), Text(f"{standing.date}, 2013 · {standing.seconds:.0f} s", "dim"))
    parts: list[RenderableType] = [head, _stream(standing), "", _processes(standing), "", LEARNING, _quality(standing)]
    shares = trend(standing.windows)
    if shares is not None:
        parts += ["", shares]
    if standing.newest_answer is not None:
        parts += ["", _answer(standing)]
    return Padding(Group(*parts), (1, 1, 0, 1))


def _stream(standing: Standing) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(ratio=1)
    table.add_column(justify="right")
    table.add_row(
        ProgressBar(total=standing.rows, completed=standing.sent),
        f"{standing.sent:,} of {standing.rows:,} flights sent",
    )
    return table


def _processes(standing: Standing) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    waiting = "Kafka cannot be reached, waiting" if standing.unreachable else f"lag {standing.lag:,} rows"
    table.add_row("training", f"{standing.trained:,} learned", f"{standing.rows_per_s:,.0f} rows/s", waiting)
    if standing.version and standing.trained:
        newest = "" if standing.event_age_s is None else f"with rows {age_text(standing.event_age_s)} old"
        table.add_row("snapshot", f"version {standing.version}", f"{age_text(standing.age_s)} old", newest)
    else:
        table.add_row("snapshot", "none yet", "", "")
    answered = f"{standing.answered:,} of {standing.asked:,}"
    table.add_row("predictions", answered, f"{standing.answers_per_s:,.0f}/s", _delay(standing))
    dead = sum(standing.dead.values())
    table.add_row("left out", f"{standing.filtered:,} never arrived", f"{dead:,} dead letters", "")
    return table


def _delay(standing: Standing) -> str:
    p50_s, p99_s = standing.delay_p50_s, standing.delay_p99_s
    return "" if p50_s is None or p99_s is None else f"p50 {_ms(p50_s)}, p99 {_ms(p99_s)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:,.0f} ms" if seconds < 10 else f"{seconds:.0f} s"


def _quality(standing: Standing) -> Table:
    """Scores of the newest window and in total, the constant prediction's beside each."""
    window = standing.windows[-1] if standing.windows else {}
    return quality_table({window_name(window): window, "in total": standing.scores})


def _answer(standing: Standing) -> Text:
    told = standing.newest_answer
    assert told is not None
    text = Text("newest answer  ", "bold", no_wrap=True, overflow="ellipsis")
    text.append(f"{told.flight}: ")
    text.append(f"late with {told.probability:.0%}", "yellow" if told.probability >= 0.5 else "green")
    truth = "never arrived" if told.late is None else "was late" if told.late else "was on time"
    return text.append(f", {truth}", "dim")


def plain(standing: Standing) -> str:
    """The same in a line, for pipes and logs."""
    if not standing.scores:
        return f"{standing.seconds:5.1f} s  {standing.sent:,} flights sent, none learned yet"
    window = standing.windows[-1] if standing.windows else standing.scores
    both = {key: f"{score(window, key)} ({score(standing.scores, key)} in total)" for key in ("log_loss", "auc")}
    return (
        f"{standing.seconds:5.1f} s  {standing.trained:,} rows, {standing.rows_per_s:,.0f}/s, lag {standing.lag:,}; "
        f"snapshot {standing.version}, {age_text(standing.age_s)} old; "
        f"log loss {both['log_loss']}, constant {score(standing.scores, 'constant_log_loss')}; AUC {both['auc']}; "
        f"{standing.answers_per_s:,.0f} predictions/s"
    )


def ending(summary: Summary) -> list[RenderableType]:
    """The summary for people, in parts: a string is shown whole, the rest is cut where the terminal is narrow."""
    return ["", _counts(summary), "", *_checks(summary), "", *_next(summary)]


def _counts(summary: Summary) -> Table:
    standing, report = summary.standing, summary.report
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(min_width=NAME_COLUMNS - 2, style="bold")
    streamed = f"{standing.sent:,} streamed in {standing.streamed_s:.0f} s"
    table.add_row("flights", f"{streamed}, {report.rows_trained:,} learned")
    table.add_row("left out", f"{report.rows_filtered:,} never arrived, {report.rows_dead:,} damaged: dead letters")
    for title, key in SCORES:
        if key in standing.scores:
            constant = score(standing.scores, f"constant_{key}")
            table.add_row(title, f"{score(standing.scores, key)}, the constant prediction's {constant}")
    table.add_row("snapshots", f"{standing.version:,} published")
    errors = f", {standing.errors:,} with an error" if standing.errors else ""
    answered = f"{standing.answered:,} of {standing.asked:,} requests answered{errors}"
    table.add_row("predictions", ", ".join(filter(None, (answered, _delay(standing)))))
    return table


def _checks(summary: Summary) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for check in summary.report.checks:
        line = Text(f"{'' if lines else 'verify':{NAME_COLUMNS}}", "bold")
        line.append("ok      " if check.ok else "FAILED  ", "green" if check.ok else "bold red")
        lines.append(line.append(f"{check.name:14}{check.promise}", "dim" if check.ok else "red"))
    problems = [f"{check.name}: {problem}" for check in summary.report.checks for problem in check.problems[:5]]
    if summary.rows_accounted != summary.standing.sent:
        problems.append(f"{summary.standing.sent:,} rows sent, {summary.rows_accounted:,} accounted for")
    if summary.missing_answers:
        problems.append(f"{summary.missing_answers:,} requests without an answer")
    return lines + [f"FAILED {problem}" for problem in problems]


def _next(summary: Summary) -> list[RenderableType]:
    lines: list[RenderableType] = [Text("next", "bold")]
    for following in summary.next_commands:
        lines += [Text(f"  {following.text}", "dim"), f"  {following.command}"]
    return lines
