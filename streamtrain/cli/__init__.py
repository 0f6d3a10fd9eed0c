"""The command line: `main` is its entry; each file of `commands` is one command or group of commands."""

from __future__ import annotations

import sys

import typer.main

from streamtrain.cli.app import app
from streamtrain.cli.failure import report_failure
from streamtrain.errors import StreamtrainError

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code; an error is one message, not a traceback."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        typer.main.get_command(app).main(given, prog_name="streamtrain")
    except StreamtrainError as error:
        report_failure(error, given)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
