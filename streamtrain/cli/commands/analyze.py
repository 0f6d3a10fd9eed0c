"""Say what the columns of a job hold in files or on its topic: counts, quantiles, and how far that has moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any

import typer
from rich.table import Table

from streamtrain.analysis.collisions import warnings
from streamtrain.analysis.sketches import DISTINCT_ERROR, QUANTILE_ERROR
from streamtrain.analysis.summary import Summary
from streamtrain.cli.choice import one_of
from streamtrain.cli.console import table
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.stopping import StopSignals
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.rejected import Rejecting
from streamtrain.columns.row_plan import Around
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.files.file_records import FileRecords
from streamtrain.files.forms import form_names
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.record_sources.source_kind import source_of

ORDER = 66
AGAINST_RECORDS = 100_000  # before a snapshot's positions
BARS = " ▁▂▃▄▅▆▇█"
app = typer.Typer(add_completion=False)


@app.command()
@command
def analyze(
    session: Session,
    job: JobFile,
    input: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Rows, as produce takes them; may be repeated.", show_default=False),
    ] = None,
    topic: Annotated[bool, typer.Option("--topic", help="The records topic, up to its end now.")] = False,
    against: Annotated[
        int | None,
        typer.Option(metavar="VERSION", help="Drift from the newest records this snapshot has seen.",
                     show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.", show_default=False)] = None,
    form: Annotated[
        str | None,
        typer.Option("--form", **one_of(form_names, "What the input is, where its name does not say it")),
    ] = None,
) -> None:
    """Say what the columns of a job hold: how many, how many differ, quantiles, histograms, drift. Ctrl-C ends it and
    shows what was read."""
    if bool(input) == topic:
        raise UserMistake("analyze: expected --input FILE or --topic, got " + ("both" if topic else "none of them"))
    found = session.job(job)
    with StopSignals() as stop, Progress(session.out, "rows", limit) as bar:

        def read(summary: Summary, records: Iterable[Any], bare: bool) -> Summary:
            for rows in summary.add(stop.each(records), bare):
                bar.show(rows)
                if limit is not None and rows >= limit:
                    break
            return summary

        reference = None
        if against is not None:
            reference = read(Summary(found), islice(_seen(found, against), AGAINST_RECORDS), False)
        if topic:
            messages = read_messages(found, "records", until_end=True)
            summary = read(Summary(found), map(_record, messages), False)
        else:
            summary, rejecting = Summary(found), Rejecting(1.0)
            read(summary, FileRecords(found, input or [], form, limit, summary.bare, rejecting), True)
            summary.add_rejected(rejecting.found)
    document = {**summary.document(reference), "against": against, "stopped": stop.is_set(),
                "errors": {"distinct": DISTINCT_ERROR, "quantile": QUANTILE_ERROR}}  # fmt: skip
    note = f"distinct above 1,000 to {DISTINCT_ERROR:.1%}, quantiles to {QUANTILE_ERROR:.0%}"
    totals = f"{document['rows']:,} rows, {document['unusable_rows']:,} of them unusable; {note}"
    session.out.document(document, _build_table(document, against), *warnings(document), totals)
    raise typer.Exit(stop.code)


def _record(message: Message) -> tuple[bytes, Around]:
    return message.value or b"", message.around()


def _seen(job: Job, version: int) -> Iterator[tuple[bytes, Around]]:
    """The newest records before a snapshot's positions, as far as the topic still has them."""
    with SnapshotTopic(job.name, job.kafka.bootstrap, job.kafka_consumer()) as topic:
        manifest = topic.version(version, trainer=False).manifest
    if what := source_of(manifest.positions.topic_id).off_topic:
        raise UserMistake(f"--against: expected a snapshot of records on a topic, got {version}, which has read {what}")
    name = str(job.topic("records").name)
    bounds = Admin(job.kafka.bootstrap, job.kafka_admin()).spans(name)
    share = max(1, AGAINST_RECORDS // max(1, len(manifest.positions.partitions)))
    spans = {}
    for partition, position in enumerate(manifest.positions.partitions):
        low, high = bounds[partition] if bounds is not None and partition < len(bounds) else (0, 0)
        end = min(position[0], high)
        spans[partition] = (max(low, end - share), end)
    if all(begin >= end for begin, end in spans.values()):
        raise SnapshotError(f"snapshot {version}: expected some of the records it has seen on {name}, found none")
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer()) as consumer:
        yield from map(_record, read_all(consumer, name, spans))


def _build_table(document: dict[str, Any], against: int | None) -> Table:
    heads = ["column", "holds", "missing", "unusable", "distinct", "mean", "5 %", "50 %", "95 %", "rows by value"]
    lines = []
    for name, each in document["columns"].items():
        numbers = [each.get("mean"), *(each.get("quantiles", {}).get(share) for share in ("0.05", "0.5", "0.95"))]
        about = "" if each.get("distinct_is_exact", True) else "~"
        line = [name, each["holds"], _share(each["missing"], each["rows"]), _share(each["unusable"], each["rows"]),
                f"{about}{each['distinct']:,}" if "distinct" in each else "",
                *map(_number, numbers), _bars(each.get("histogram", {}).get("rows", []))]  # fmt: skip
        lines.append([*line, *([_number(each.get("drift"))] if against is not None else [])])
    return table([*heads, *([f"drift from {against}"] if against is not None else [])], lines)


def _share(count: int, of: int) -> str:
    return "" if not count else f"{count / of:.1%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _bars(rows: list[int]) -> str:
    most = max(rows, default=0)
    return "".join(BARS[-(-count * (len(BARS) - 1) // most)] for count in rows) if most else ""
