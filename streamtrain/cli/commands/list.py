"""Show what was found: the entries of each registry, and the settings."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.console import table
from streamtrain.cli.session import Session, command
from streamtrain.compute.options import REQUIRED
from streamtrain.job import settings_table
from streamtrain.registry import BaseRegistry, registries

ORDER = 140
app = typer.Typer(add_completion=False)


def settings_of(registry: BaseRegistry, name: str) -> dict[str, Any]:
    """The settings an entry declares, where the entries of its registry declare any."""
    options = getattr(import_module(registry.package), "options", None)
    if options is None:
        return {}
    settings = {
        setting: {"takes": option.takes(), "default": None if option.default is REQUIRED else option.default,
                  "help": option.help}
        for setting, option in options(name).items()
    }  # fmt: skip
    return {"settings": settings}


def _settings(row: dict[str, Any]) -> str:
    settings = row.get("settings", {})
    return "; ".join(f"{name}: {setting['takes']}" for name, setting in settings.items())


@app.command()
@command
def list_(
    session: Session,
    kind: Annotated[
        str,
        typer.Argument(show_default=False, **one_of(lambda: [*registries(), "settings"], "What to list")),
    ],
) -> None:
    """Show the entries of one kind. `settings`: what a job file may set."""
    if kind == "settings":
        rows = [vars(setting) for setting in settings_table()]
        view = table(
            ["setting", "takes", "default", "help"], [(r["path"], r["takes"], r["default"], r["help"]) for r in rows]
        )
    else:
        registry = registries()[kind]
        rows = [
            {"name": registry.display_name(name), "help": text, **settings_of(registry, name)}
            for name, text in registry.describe().items()
        ]
        view = table([kind, "", ""], [(row["name"], row["help"], _settings(row)) for row in rows])
    session.out.document({kind: rows}, view)
