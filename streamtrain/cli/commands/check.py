"""Check a job before it runs: job file, broker, topics, snapshot fit, sizes, records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from streamtrain.analysis.collisions import warnings
from streamtrain.analysis.summary import Summary
from streamtrain.cli.console import table
from streamtrain.cli.session import Files, JobFile, Session, command
from streamtrain.clients.topic_reader import read_messages
from streamtrain.files.file_records import FileRecords
from streamtrain.files.found import FoundFile, found_files
from streamtrain.job import Job
from streamtrain.kafka.clients import Message
from streamtrain.run.findings import Finding, findings

ORDER = 40
SIGNS = {"ok": Text("ok"), "warning": Text("warning", "yellow"), "mistake": Text("mistake", "red")}
app = typer.Typer(add_completion=False)


@app.command()
@command
def check(
    session: Session,
    job: JobFile,
    sample: Annotated[int, typer.Option(min=0, metavar="N", help="Records, or rows of files, to decode; 0: none.")] = (
        1_000
    ),
    files: Files = None,
) -> None:
    """Check a job: job file, broker, topics, snapshot fit, sizes, N records decoded; exit code 1 on a mistake. With
    --files as it will be trained on these files.

    Writes nothing.
    """
    found = session.job(job)
    looked = found_files(files or ())
    messages = islice(read_messages(found, "records", until_end=True), sample) if sample and not files else None
    seen: list[Message] = []
    records = None if messages is None else _noted(messages, seen)
    all_ = list(findings(found, session.admin(found), records, looked, sample))
    if not any(finding.state == "mistake" or finding.what == "registry" for finding in all_ if finding.state != "ok"):
        all_ += _collisions(found, seen, looked, sample)
    ok = all(finding.state != "mistake" for finding in all_)
    document = {"job": found.name, "ok": ok, "findings": [finding.as_dict() for finding in all_]}
    session.out.document(document, table(["", "", ""], [(SIGNS[f.state], f.what, f.text) for f in all_]))
    raise typer.Exit(0 if ok else 1)


def _noted(messages: Iterable[Message], seen: list[Message]) -> Iterator[Message]:
    for message in messages:
        seen.append(message)
        yield message


def _collisions(job: Job, messages: Sequence[Message], files: Sequence[FoundFile], sample: int) -> Iterator[Finding]:
    """Frequent values that the model cannot tell apart, in the sample."""
    if not messages and not (files and sample):
        return
    summary = Summary(job)
    if files and sample:
        rows = FileRecords(job, [file.path for file in files], limit=sample, format=summary.bare)
        seen = summary.add(rows, bare=True)
    else:
        seen = summary.add((message.value, message.around()) for message in messages if message.value is not None)
    for _ in seen:
        pass
    yield from (Finding("categories", "warning", text) for text in warnings(summary.document()))
