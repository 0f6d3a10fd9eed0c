"""Compute published snapshots again from an earlier one and compare them bit for bit."""

from __future__ import annotations

from typing import Annotated

import typer

from streamtrain.checks.replay import replay as recompute
from streamtrain.cli.report import show_report
from streamtrain.cli.session import Files, JobFile, Session, command
from streamtrain.errors import UserMistake
from streamtrain.files.found import found_files

ORDER = 130
app = typer.Typer(add_completion=False)


@app.command()
@command
def replay(
    session: Session,
    job: JobFile,
    from_version: Annotated[
        int, typer.Option("--from", metavar="N", help="Snapshot to begin from.", show_default=False)
    ],
    to_version: Annotated[
        int | None,
        typer.Option("--to", metavar="M", help="Last one to compute; default: the newest.", show_default=False),
    ] = None,
    files: Files = None,
) -> None:
    """Compute published snapshots again from snapshot N over the round log and compare; writes nothing. Exit code 1
    where one differs, 5 where records that it needs were compacted away.
    """
    if to_version is not None and to_version <= from_version:
        raise UserMistake(f"--to: expected a version after --from {from_version}, got {to_version}")
    show_report(session.out, recompute(session.connected_job(job), from_version, to_version, found_files(files or ())))
