"""Show what was found: the entries of each registry, and the settings."""

from __future__ import annotations

from typing import Annotated

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.output import table
from streamtrain.cli.session import Session, command
from streamtrain.job import settings_table
from streamtrain.registry import registries

ORDER = 140
app = typer.Typer(add_completion=False)


@app.command()
@command
def list_(
    session: Session,
    kind: Annotated[
        str,
        typer.Argument(help="What to list.", show_default=False, **one_of(lambda: [*registries(), "settings"])),
    ],
) -> None:
    """Show what was found of one kind; each entry is a file of its folder. `settings`: what a job file may set."""
    if kind == "settings":
        rows = [vars(setting) for setting in settings_table()]
        shown = table(
            ["setting", "takes", "default", "help"], [(r["path"], r["takes"], r["default"], r["help"]) for r in rows]
        )
    else:
        registry = registries()[kind]
        rows = [{"name": registry.shown(name), "help": text} for name, text in registry.describe().items()]
        shown = table([kind, ""], [(row["name"], row["help"]) for row in rows])
    session.out.document({kind: rows}, shown)
