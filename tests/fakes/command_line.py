"""A command line as the program reads it; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer.main

from streamtrain.cli.app import app


def parsed(arguments: Sequence[str]) -> dict[str, Any]:
    """The parameters of the command, by name. Raises what Click does where it is none of ours."""
    context: Any = typer.main.get_command(app).make_context("streamtrain", list(arguments))
    while hasattr(context.command, "resolve_command"):
        name, command, left = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, left, parent=context)
    return {"command": context.command_path.removeprefix("streamtrain "), **context.params}
