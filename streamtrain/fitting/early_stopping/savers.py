"""Storage of the best model so far."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from streamtrain.errors import UserMistake
from streamtrain.fitting.fitted import Fitted


class Saver(Protocol):
    def save(self, model: Fitted) -> None:
        """It is better than all before it."""

    def best(self) -> Fitted | None:
        """The one saved last."""


class InMemory:
    """Keeps the best model in memory, as long as the program runs."""

    def __init__(self) -> None:
        self._best: Fitted | None = None

    def save(self, model: Fitted) -> None:
        self._best = model

    def best(self) -> Fitted | None:
        return self._best


class InFolder:
    """In files, which `Fitted.load` reads, and which are there when the program has died. UserMistake where they cannot
    be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = InMemory()

    def save(self, model: Fitted) -> None:
        try:
            model.save(self._folder)
        except OSError as error:
            raise UserMistake(f"{self._folder}: the best model cannot be saved there: {error.strerror}") from error
        self._kept.save(model)

    def best(self) -> Fitted | None:
        return self._kept.best()
