"""Produce records or requests from files or standard input."""

from __future__ import annotations

import os
import shlex
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import TIMEOUT_MAX
from typing import Annotated, Any

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.progress import Progress
from streamtrain.cli.session import JobFile, MaxRejected, Session, command, finite
from streamtrain.cli.stopping import StoppedAtOnce, StopSignals
from streamtrain.clients.writer import RecordWriter
from streamtrain.columns.forms import FileRows
from streamtrain.columns.rejected import MAX_REJECTED, Rejecting
from streamtrain.errors import StreamtrainError
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.forms import form_names
from streamtrain.files.reading import read_blocks, without_first
from streamtrain.files.source import STANDARD_INPUT
from streamtrain.job import Job
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.log import get_logger
from streamtrain.topics.topic import row_topics, topic

log = get_logger(__name__)
ORDER = 60
BLOCK_ROWS = 4_096  # given to the writer at once, of a file; standard input may be live and is not waited for
PACE_S = 0.05  # the least pause of --rate
app = typer.Typer(add_completion=False)
Inputs = Annotated[
    list[str],
    typer.Option(
        metavar="FILE",
        help="A file, by its suffix: .csv, .jsonl, .parquet and others; - is standard input.",
        show_default=False,
    ),
]
FileForm = Annotated[
    str | None,
    typer.Option("--form", **one_of(form_names, "What the input is, where its name does not say it")),
]
Check = Annotated[
    bool, typer.Option("--check/--no-check", help="Check files whole before the first row is sent.")
]


@app.command()
@command
def produce(
    session: Session,
    context: typer.Context,
    job: JobFile,
    input: Inputs,
    to: Annotated[str, typer.Option(**one_of(row_topics, "The topic to write to"))] = "records",
    rate: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="Rows per second; 0: no limit.", show_default=False)
    ] = None,
    pack: Annotated[int, typer.Option(min=1, max=65_536, help="Rows in a record; many are much faster to read.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.", show_default=False)] = None,
    skip: Annotated[int, typer.Option(min=0, help="Leave out the first rows, which are on the topic already.")] = 0,
    check: Check = True,
    max_rejected: MaxRejected = MAX_REJECTED,
    form: FileForm = None,
) -> None:
    """Produce records or requests from a file or standard input. Ctrl-C or SIGTERM ends it when what was
    written is delivered. However it ends, it says how many rows are sent, and which command goes on behind them."""
    _check_topic(session, found := session.connected_job(job), to)
    selection = ColumnSelection(found.schema, label=topic(to).rows == "training")

    def blocks() -> Iterator[FileRows]:
        size = Size(_block_rows(input, pack, rate), pack, None if limit is None else limit + skip)
        return without_first(read_blocks(input, selection, size, form), skip)

    started_s, sent, rejecting = time.monotonic(), Sent(), Rejecting(max_rejected, "--max-rejected")
    try:
        with (
            StopSignals() as stop,
            RecordWriter(found, to, pack=pack) as writer,
            Progress(session.out, f"rows to {writer.topic}", limit) as bar,
        ):
            if check and all(map(os.path.isfile, input)):
                rejecting = _checked(writer, stop, blocks(), rejecting)
            for block in stop.each(_paced(blocks(), rate or 0)):
                sent.write(writer, block, rejecting)
                bar.show(writer.rows_written)
            writer.flush()
            _judge(rejecting, stop)
            bar.show(writer.rows_written)
    except StreamtrainError as error:
        error.args = (f"{error}; {_ended(sent, context)}",)
        raise
    except StoppedAtOnce:
        log.error(_ended(sent, context))
        raise
    session.out.document(*_report(writer, sent, skip, time.monotonic() - started_s, stop.is_set()))
    if stop.is_set() and not session.as_json:
        print(_ended(sent, context))
    raise typer.Exit(stop.code)


def _checked(writer: RecordWriter, stop: StopSignals, blocks: Iterator[FileRows], rejecting: Rejecting) -> Rejecting:
    """UserMistake where too many rows would be left out; gives what counts those that are, while they are sent."""
    for block in stop.each(blocks):
        with rejecting.counting(block.row_count):
            writer.check(block, rejecting.leave_out)
    _judge(rejecting, stop)
    return rejecting.again()


def _block_rows(input: list[str], pack: int, rate: float | None) -> int:
    rows = BLOCK_ROWS if STANDARD_INPUT not in input else pack
    return rows if not rate else max(1, min(rows, int(rate * PACE_S)))


def _judge(rejecting: Rejecting, stop: StopSignals) -> None:
    if not stop.is_set():
        rejecting.end()


class Sent:
    """Counts what is delivered for certain: rows up to the first that is not, and records behind it."""

    def __init__(self) -> None:
        self._rows = self._rejected = 0
        self._waiting: deque[_Block] = deque()

    def write(self, writer: RecordWriter, rows: FileRows, rejecting: Rejecting) -> None:
        block = _Block()
        self._waiting.append(block)
        before, records, rejected = writer.rows_written, writer.records_written, rejecting.found.rows
        try:
            with rejecting.counting(rows.row_count):
                writer.write(rows, on_delivery=block.count, on_rejected=rejecting.leave_out)
            block.rejected = rejecting.found.rows - rejected
        finally:
            block.rows, block.records = writer.rows_written - before, writer.records_written - records
        self._pass()

    def _pass(self) -> None:
        while self._waiting and self._waiting[0].delivered == self._waiting[0].records:
            block = self._waiting.popleft()
            self._rows, self._rejected = self._rows + block.rows, self._rejected + block.rejected

    @property
    def rows(self) -> int:
        self._pass()
        return self._rows

    @property
    def rejected(self) -> int:
        """Rows that were left out among them."""
        self._pass()
        return self._rejected

    @property
    def records_behind(self) -> int:
        return sum(block.delivered for block in self._waiting)


@dataclass
class _Block:
    rows: int = 0
    rejected: int = 0
    records: int = -1  # not known yet
    delivered: int = 0

    def count(self, error: object, message: object) -> None:
        self.delivered += error is None


def _ended(sent: Sent, context: typer.Context) -> str:
    """Returns the text with the number of rows sent, and the command that goes on."""
    skip, limit = context.params["skip"], context.params["limit"]
    if not sent.rows and not sent.records_behind:
        return "no row is sent" if not skip else f"no row is sent behind the {skip:,} that were skipped"
    text = f"{sent.rows:,} rows are sent" + (f" behind the {skip:,} that were skipped" if skip else "")
    passed = sent.rows + sent.rejected
    if sent.rejected:
        text += f", {sent.rejected:,} among them left out"
    if sent.records_behind:
        text += f", and {sent.records_behind:,} records behind them, whose rows would be there twice"
    if STANDARD_INPUT in context.params["input"]:
        return f"{text}; --skip {skip + passed} leaves them out where the same input comes again"
    left = None if limit is None else limit - passed
    return f"{text}; go on with: {_command(context, skip=skip + passed, limit=left)}"


def _command(context: typer.Context, **instead: int | None) -> str:
    """The command line of a call, with other values of some options."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        is_given = source is not None and source.name == "COMMANDLINE"
        value = instead.get(name, context.params.get(name) if is_given else None)
        if value is None:
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        elif getattr(parameter, "count", False):
            words += parameter.opts[:1] * int(value)
        else:
            for each in value if isinstance(value, list | tuple) else [value]:
                words += [parameter.opts[0], str(each)]
    return shlex.join(words)


def _report(writer: RecordWriter, sent: Sent, skip: int, seconds: float, stopped: bool) -> tuple[dict[str, Any], str]:
    """Returns what was written, as a document and as a sentence."""
    left_out = f", {sent.rejected:,} rows left out" if sent.rejected else ""
    document = {
        "topic": writer.topic,
        "rows": sent.rows,
        "rejected": sent.rejected,
        "skipped": skip,
        "records": writer.records_written,
        "seconds": round(seconds, 3),
        "stopped": stopped,
    }
    return (
        document,
        f"{sent.rows:,} rows in {writer.records_written:,} records to {writer.topic} in {seconds:.1f} s{left_out}",
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
            time.sleep(min(ahead_s, TIMEOUT_MAX))
