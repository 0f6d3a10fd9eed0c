"""A finding of a check, and what to do if it is not well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True)
class Finding:
    """`state`: ok; warning, it works but worse; wrong, it does not work. `do`: what would mend it."""

    what: str
    found: str
    state: State = "ok"
    do: str = ""
