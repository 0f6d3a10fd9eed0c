"""Show what was found: ops, layers, losses, optimizers, record formats, backends, settings."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from streamtrain.cli.output import table
from streamtrain.cli.registries import entries
from streamtrain.cli.session import Session, command
from streamtrain.job import settings_table

ORDER = 140
app = typer.Typer(add_completion=False)


class Kind(StrEnum):
    OPS = "ops"
    LAYERS = "layers"
    LOSSES = "losses"
    OPTIMIZERS = "optimizers"
    FORMATS = "formats"
    BACKENDS = "backends"
    SETTINGS = "settings"


@app.command()
@command
def list_(session: Session, kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)]) -> None:
    """Show what was found of one kind; each entry is a file of its folder. `settings`: what a job file may set."""
    if kind is Kind.SETTINGS:
        rows = [vars(setting) for setting in settings_table()]
        shown = table(
            ["setting", "takes", "default", "help"], [(r["path"], r["takes"], r["default"], r["help"]) for r in rows]
        )
    else:
        rows = [{"name": name, **about} for name, about in entries(kind.value).items()]
        shown = table([kind.value, ""], [(row["name"], row.get("help", "")) for row in rows])
    session.out.document({kind.value: rows}, shown)
