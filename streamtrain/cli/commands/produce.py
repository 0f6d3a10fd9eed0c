"""Produce records or requests from files or standard input."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.cli.stopping import StopSignals
from streamtrain.clients.writer import RecordWriter
from streamtrain.columns.forms import FileRows
from streamtrain.files.blocks import Size
from streamtrain.files.forms import form_names
from streamtrain.files.reading import read_blocks
from streamtrain.files.source import STANDARD_INPUT
from streamtrain.files.wanted import Wanted
from streamtrain.job import Job
from streamtrain.kafka.errors import no_such_topic
from streamtrain.topics.topic import row_topics, topic

ORDER = 60
BLOCK_ROWS = 4_096  # given to the writer at once, of a file; standard input may be live and is not waited for
PACE_S = 0.05  # the least pause of --rate
app = typer.Typer(add_completion=False)


@app.command()
@command
def produce(
    session: Session,
    job: JobFile,
    input: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="By its name's end .csv, .jsonl, .parquet and others; - is standard input.",
            show_default=False,
        ),
    ],
    to: Annotated[str, typer.Option(**one_of(row_topics, "The topic to write to"))] = "records",
    rate: Annotated[
        float | None, typer.Option(min=0, help="Rows per second; 0: as fast as it goes.", show_default=False)
    ] = None,
    pack: Annotated[int, typer.Option(min=1, max=65_536, help="Rows in a record; many are much faster to read.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.", show_default=False)] = None,
    form: Annotated[
        str | None,
        typer.Option("--form", **one_of(form_names, "What the input is, where its name does not say it")),
    ] = None,
) -> None:
    """Produce records or requests from a file or standard input. Ctrl-C or SIGTERM ends it when what was
    written is delivered."""
    found = session.connected_job(job)
    _check_topic(session, found, to)
    rows = BLOCK_ROWS if STANDARD_INPUT not in input else pack
    size = Size(rows if not rate else max(1, min(rows, int(rate * PACE_S))), pack, limit)
    wanted = Wanted(found.schema, label=topic(to).rows == "training")
    blocks = _paced(read_blocks(input, wanted, size, form), rate or 0)
    started_s = time.monotonic()
    with (
        StopSignals() as stop,
        RecordWriter(found, to, pack=pack) as writer,
        Progress(session.out, f"rows to {writer.topic}", limit) as bar,
    ):
        while block := stop.wait_for(lambda: next(blocks, None)):
            writer.write(block)
            bar.show(writer.rows_written)
        writer.flush()
        bar.show(writer.rows_written)
    session.out.document(*_told(writer, time.monotonic() - started_s, stop.is_set()))
    raise typer.Exit(stop.code)


def _told(writer: RecordWriter, seconds: float, stopped: bool) -> tuple[dict[str, Any], str]:
    """What was written, as a document and as a sentence."""
    document = {
        "topic": writer.topic,
        "rows": writer.rows_written,
        "records": writer.records_written,
        "seconds": round(seconds, 3),
        "stopped": stopped,
    }
    return (
        document,
        f"{writer.rows_written:,} rows in {writer.records_written:,} records to {writer.topic} in {seconds:.1f} s",
    )


def _check_topic(session: Session, job: Job, to: str) -> None:
    """A producer would wait for a topic that is not there until its rows are too old."""
    name = str(job.topic(to).name)
    if session.admin(job).absent(name):
        raise no_such_topic(name, job.kafka.bootstrap)


def _paced(blocks: Iterator[FileRows], rate: float) -> Iterator[FileRows]:
    """No faster than `rate` rows a second (0: no limit)."""
    started_s, sent = time.monotonic(), 0
    for block in blocks:
        yield block
        sent += block.row_count
        ahead_s = sent / rate - (time.monotonic() - started_s) if rate else 0
        if ahead_s > 0:
            time.sleep(ahead_s)
