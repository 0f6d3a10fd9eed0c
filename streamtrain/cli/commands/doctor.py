"""Look at the machine and Kafka, and say what would keep streamtrain from working: a page to paste into an issue."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from streamtrain.cli.console import table
from streamtrain.cli.session import Session, command
from streamtrain.doctor import look
from streamtrain.job.kafka_settings import KafkaSettings

ORDER = 135
app = typer.Typer(add_completion=False)
_STYLES = {"ok": "", "warning": "yellow", "wrong": "bold red"}


@app.command()
@command
def doctor(
    session: Session,
    job: Annotated[
        Path | None, typer.Argument(metavar="[JOB.toml]", help="A job file, for its Kafka.", show_default=False)
    ] = None,
) -> None:
    """Look at versions, processor, memory, limits, clock, GPU and Kafka. Exit code 1 where something is wrong.

    Shows no settings of [kafka] but the address, so that all of it may be shown to others.
    """
    kafka = session.job(job).kafka if job is not None else None
    if kafka is None and session.bootstrap is not None:
        kafka = KafkaSettings({"bootstrap.servers": session.bootstrap})
    findings = [finding for _, found in look(kafka) for finding in found]
    rows = [
        (
            finding.what,
            Text(finding.state, _STYLES[finding.state]),
            f"{finding.found}; {finding.do}" if finding.do else finding.found,
        )
        for finding in findings
    ]
    session.out.document({"findings": [asdict(finding) for finding in findings]}, table(["", "", ""], rows))
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)
