"""Show what each publication of a job added, from its round log alone."""

from __future__ import annotations

import csv
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from streamtrain.cli.console import table
from streamtrain.cli.output import SCORES, count_text
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.clients.history import history, run_ends
from streamtrain.clients.published import Published
from streamtrain.compute.metrics import numbers
from streamtrain.errors import UserMistake
from streamtrain.job import Job

ORDER = 105
app = typer.Typer(add_completion=False)
_MAX_TABLE_ROWS = 40  # publications in the table


def _published(job: Job) -> Iterator[Published]:
    return history(job.name, job.kafka.bootstrap, job.kafka_consumer(), topic=job.topic("rounds").name)


@app.command("history")
@command
def history_(
    session: Session,
    job: JobFile,
    as_csv: Annotated[bool, typer.Option("--csv", help="All of it as CSV, one line a publication.")] = False,
    last: Annotated[
        int | None,
        typer.Option("--last", metavar="N", min=1, help=f"Newest publications only; the table has {_MAX_TABLE_ROWS}."),
    ] = None,
) -> None:
    """Show what each publication of a job added: rows, loss and scores, workers, runs and how they ended."""
    if as_csv and session.as_json:
        raise UserMistake("--csv: expected either --csv or --json, got both")
    found = session.job(job)
    names = _metric_names(_published(found)) if as_csv else []
    limit = last if last is not None or as_csv or session.as_json else _MAX_TABLE_ROWS
    published = _published(found) if limit is None else deque(_published(found), limit)
    if as_csv:
        _write_csv(names, published)
    elif session.as_json:
        for publication in published:
            session.out.line(asdict(publication))
    else:
        listed = list(published)
        lines = [_line(publication) for publication in listed]
        session.out.say(table(_HEADER, lines) if lines else f"no round log of {found.name} yet")
        for text in _published_nothing(found, listed[-1].run if listed else 0):
            session.out.say(text)


_HEADER = (
    "version", "time", "run", "rounds", "updates", "rows", "rows/s", "dead", "loss", "window", "total", "rate",
    "workers", "deaths", "",
)  # fmt: skip


def _line(publication: Published) -> tuple[object, ...]:
    rate, end = publication.rows_per_second, publication.run_end
    return (
        publication.version,
        datetime.fromtimestamp(publication.created_ms / 1000).isoformat(" ", "seconds"),
        publication.run,
        publication.rounds,
        f"{publication.updates:,}",
        f"{publication.rows:,}",
        None if rate is None else count_text(round(rate)),
        f"{publication.dead:,}",
        None if publication.loss is None else f"{publication.loss:.4f}",
        _score(publication.metrics.get("window")),
        _score(publication.metrics.get("total")),
        _rate(publication),
        publication.workers,
        publication.worker_deaths,
        "" if end is None else f"the run ended: {end.reason}",
    )


def _rate(publication: Published) -> str:
    """The job's, times what a schedule that goes by the loss has left of it."""
    rate, left = publication.learning_rate.get("rate"), publication.metrics.get("rate_left", 1.0)
    return str(publication.learning_rate["name"]) if rate is None else f"{rate * left:g}"


def _published_nothing(job: Job, last: int) -> Iterator[str]:
    """A line for each run that has ended since run `last`, the newest of those in the table."""
    for run, end in run_ends(job.name, job.kafka.bootstrap, job.kafka_consumer()).items():
        if run > last and end is not None:
            yield f"run {run} published nothing, it ended: {end.reason}"


def _score(figures: Any) -> str | None:
    """`auc 0.8950`: the first of the figures people compare models by."""
    found = figures if isinstance(figures, dict) else {}
    return next((f"{name} {found[name]:.4f}" for _, name in SCORES if isinstance(found.get(name), float)), None)


def _metric_names(published: Iterable[Published]) -> list[tuple[str, str]]:
    """(span, name) of every figure any publication has, in the order they come up: a header stands before all lines."""
    names = {
        (span, name): None
        for publication in published
        for span, figures in publication.metrics.items()
        if isinstance(figures, dict)
        for name in numbers(figures)
    }
    return list(names)


def _write_csv(names: list[tuple[str, str]], published: Iterable[Published]) -> None:
    writer: csv.DictWriter[str] | None = None
    for publication in published:
        row = _flat(publication)
        if writer is None:
            columns = [*row, *(f"{span}.{name}" for span, name in names)]
            writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
        figures = {f"{span}.{name}": (publication.metrics.get(span) or {}).get(name) for span, name in names}
        writer.writerow({**row, **figures})


def _flat(publication: Published) -> dict[str, object]:
    row = asdict(publication)
    del row["metrics"]
    end, rate = row.pop("run_end"), row.pop("learning_rate")
    time = datetime.fromtimestamp(publication.created_ms / 1000, UTC).isoformat(timespec="milliseconds")
    reason = None if end is None else end["reason"]
    return {"time": time, **row, "learning_rate": rate.get("rate", rate["name"]), "run_end": reason}
