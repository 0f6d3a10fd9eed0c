"""Registries that read their folder: every module of a package is an entry, keyed by its file's stem."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from types import ModuleType

from streamtrain.errors import UserMistake


class Registry:
    """The modules of one folder. A module whose name starts with an underscore is no entry."""

    def __init__(self, package: str, what: str) -> None:
        self.package = package
        self.what = what
        self._modules: dict[str, ModuleType] = {}

    def names(self) -> list[str]:
        """The entries found, sorted."""
        folder = importlib.import_module(self.package).__path__
        return sorted(module.name for module in pkgutil.iter_modules(folder) if not module.name.startswith("_"))

    def get(self, name: str) -> ModuleType:
        """The entry's module; a UserMistake with the nearest name if there is none."""
        if name not in self._modules:
            known = self.names()
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise UserMistake(f"{self.what}: expected one of {', '.join(known)}, got {name!r}{hint}")
            self._modules[name] = importlib.import_module(f"{self.package}.{name}")
        return self._modules[name]

    def describe(self) -> dict[str, str]:
        """Name and what it is, in one line."""
        return {name: str(self.get(name).HELP) for name in self.names()}
