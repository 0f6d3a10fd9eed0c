"""The command line: `main` is its entry; each file of `commands` is one command or group of commands."""

from __future__ import annotations

import os
import signal
import sys

import typer.main

from streamtrain import exits
from streamtrain.cli.app import app
from streamtrain.cli.failure import report_failure
from streamtrain.cli.stopping import StoppedAtOnce
from streamtrain.errors import StreamtrainError
from streamtrain.run.environment import ENVIRONMENT

HELP_WIDTH = 100  # columns of help where there is no terminal: wide enough for every option's name


def main(arguments: list[str] | None = None) -> None:
    """Runs one command and ends the process with its exit code; an error is one message, not a traceback.

    SIGTERM ends a command as Ctrl-C does, where it has nothing to finish first; SIGINT also one that a shell started in
    the background, with SIGINT ignored.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if not sys.stdout.isatty():
        os.environ.setdefault("TERMINAL_WIDTH", str(HELP_WIDTH))  # Typer's; its help's module is a third of a start
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        typer.main.get_command(app).main(given, prog_name="streamtrain")
    except StreamtrainError as error:
        report_failure(error, given)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        raise SystemExit(exits.INTERRUPTED) from None
    except StoppedAtOnce as stopped:
        sys.stdout.flush()
        if stopped.error is not None:
            report_failure(stopped.error, given)
        # no client's destructor waits for a Kafka that is away
        os._exit(exits.INTERRUPTED if stopped.error is None else stopped.error.exit_code)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
