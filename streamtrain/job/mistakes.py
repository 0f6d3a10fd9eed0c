"""Mistakes in a job file: all at once, each with its place, what was expected, what was found, the nearest name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamtrain.errors import UserMistake
from streamtrain.job.lines import Path
from streamtrain.registry import nearest


def show_path(path: Path) -> str:
    """A path as one writes it: `model.layers[0].activation`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = part.replace("-", "").replace("_", "").isalnum()
            text += ("." if text else "") + (part if plain else json.dumps(part, ensure_ascii=False))
    return text


def show_value(value: Any) -> str:
    """A value as TOML has it, cut to a line's length."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, dict):
        text = "{ " + ", ".join(f"{key} = {show_value(item)}" for key, item in value.items()) + " }" if value else "{}"
    elif isinstance(value, list):
        text = "[" + ", ".join(map(show_value, value)) + "]"
    else:
        text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True)
class Mistake:
    """One mistake. `where` is "flights.toml:14", an environment variable or a flag; `got` None: nothing is there."""

    where: str
    path: str
    expected: str
    got: str | None = None
    allowed: Sequence[str] = ()
    nearest: str = ""
    warning: bool = False

    @staticmethod
    def unknown(where: str, path: str, allowed: Sequence[str], what: str = "setting") -> Mistake:
        """A name that is none of those allowed; `path` ends with it."""
        name = path.rpartition(".")[2]
        return Mistake(where, path, f"unknown {what}", None, tuple(allowed), nearest(name, allowed))

    def __str__(self) -> str:
        text = f"{self.where}: {self.path}: " if self.path else f"{self.where}: "
        text += self.expected if self.got is None else f"expected {self.expected}, got {self.got}"
        if self.allowed:
            text += f"; allowed: {', '.join(self.allowed)}"
        return text + (f"; did you mean {self.nearest}?" if self.nearest else "")

    def as_dict(self) -> dict[str, Any]:
        return {
            "where": self.where,
            "path": self.path,
            "expected": self.expected,
            "got": self.got,
            "allowed": list(self.allowed),
            "nearest": self.nearest or None,
            "warning": self.warning,
        }


class JobMistakes(UserMistake):
    """Every mistake of a job file."""

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        self.name = name
        self.mistakes = tuple(mistakes)
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(f"{name} has {count}:\n" + "\n".join(f"  {mistake}" for mistake in mistakes))

    def __reduce__(self) -> tuple[Any, ...]:
        return JobMistakes, (self.name, self.mistakes)
