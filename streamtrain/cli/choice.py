"""An argument or option that takes one of some names, such as those of a registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from streamtrain.registry import nearest


def one_of(names: Callable[[], Sequence[str]], help: str) -> dict[str, Any]:
    """Returns the arguments for typer.Argument and typer.Option: they check and complete the value and list the names
    in the help."""

    def parse(given: str) -> str:
        if given in names():
            return given
        near = nearest(given, names())
        hint = f". Did you mean '{near}'?" if near else ""
        raise typer.BadParameter(f"expected one of {', '.join(names())}, got {given!r}{hint}")

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return {"parser": parse, "autocompletion": complete, "metavar": "NAME", "help": f"{help}: {', '.join(names())}."}
