"""The `streamtrain` command. Commands are the files of `commands`; one is imported when it is called, not before.

A command's file: a docstring whose first line is its help, ORDER (its place in --help) and `app`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from streamtrain import __version__, exits
from streamtrain.cli.commands import REGISTRY
from streamtrain.registry import nearest

EPILOG = f"Exit codes: {'; '.join(f'{code} {means}' for code, means in exits.OF_COMMANDS.items())}."


@cache
def commands() -> dict[str, str]:
    """Each command's first line of help, in the order of --help."""
    helps = REGISTRY.describe()
    ordered = sorted(helps, key=lambda name: (REGISTRY.constants(name)["ORDER"], name))
    return {REGISTRY.display_name(name): helps[name] for name in ordered}


def _stem(name: str) -> str | None:
    """The file of a command of that name; the others are not looked at."""
    return next((stem for stem in REGISTRY.names() if REGISTRY.display_name(stem) == name), None)


def unwrapped(text: str) -> str:
    """A docstring's paragraphs, each in one line for the terminal to wrap."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


class LazyCommand(typer.core.TyperCommand):
    """A command by name and help; what it does is imported when its turn comes."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        assert self.name is not None
        module = REGISTRY.get(self.name)
        command = typer.main.get_command(module.app)
        command.help = command.help or module.__doc__
        for each in (command, *getattr(command, "commands", {}).values()):
            each.help = unwrapped(each.help or "")
        command.epilog = command.epilog or EPILOG
        return command.make_context(info_name, args, parent=parent, **extra)


class CommandFolder(typer.core.TyperGroup):
    """The commands of the folder."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        stem = _stem(cmd_name)
        return None if stem is None else LazyCommand(cmd_name, help=REGISTRY.help(stem))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if _stem(name) is None and not name.startswith("-"):
            near = nearest(name, commands())
            hint = f" Did you mean '{near}'?" if near else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=CommandFolder, no_args_is_help=True, epilog=EPILOG, pretty_exceptions_enable=False)


def _show_version(value: bool) -> None:
    if value:
        print(f"streamtrain {__version__}")
        raise typer.Exit


@app.callback()
def streamtrain(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Training that never stops, on Kafka: records in, averaged snapshots and predictions out, exactly once."""
