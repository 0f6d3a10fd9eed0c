"""Check a job before it runs: job file, broker, topics, snapshot fit, sizes, records."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from streamtrain.cli.output import table
from streamtrain.cli.session import Files, JobFile, Session, command
from streamtrain.clients.topic_reader import read_messages
from streamtrain.files.found import found_files
from streamtrain.run.findings import findings

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
    records = islice(read_messages(found, "records", until_end=True), sample) if sample and not files else None
    all_ = list(findings(found, session.admin(found), records, looked, sample))
    ok = all(finding.state != "mistake" for finding in all_)
    document = {"job": found.name, "ok": ok, "findings": [finding.as_dict() for finding in all_]}
    session.out.document(document, table(["", "", ""], [(SIGNS[f.state], f.what, f.text) for f in all_]))
    raise typer.Exit(0 if ok else 1)
