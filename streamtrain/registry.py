"""Registries: folders whose files are entries. A file is one where a line of its own begins with the registry's word.

Names and help are read from the text, so that a program starts quickly; an entry is imported when it is asked for.
"""

from __future__ import annotations

import ast
import difflib
import gc
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from streamtrain.errors import UserMistake


def nearest(name: str, allowed: Iterable[str]) -> str:
    """The allowed name most like `name`, or nothing."""
    names = list(allowed)
    folded = name.lower().replace("-", "_")
    return next(
        iter(difflib.get_close_matches(folded, names, 1, 0.6) or difflib.get_close_matches(name, names, 1, 0.6)), ""
    )


class Registry:
    """The entries of one package: its modules that declare `word` at their top level, each named by its file's stem.

    `what` names an entry in errors; with `dashed`, people see dashes where a file's name has underscores.
    """

    def __init__(self, package: str, what: str, word: str = "HELP", dashed: bool = False) -> None:
        self.package, self.what, self.word, self.dashed = package, what, word, dashed

    def texts(self) -> Mapping[str, str]:
        """The text of each entry, by name, sorted."""
        return _texts(tuple(import_module(self.package).__path__), self.word)

    def names(self) -> list[str]:
        """The entries found, sorted; none is imported."""
        return list(self.texts())

    def shown(self, name: str) -> str:
        """A name as people write it."""
        return name.replace("_", "-") if self.dashed else name

    def get(self, name: str) -> ModuleType:
        """The entry's module, by its name or as people write it; UserMistake with the nearest name if there is none."""
        known = self.texts()
        stem = name.replace("-", "_") if self.dashed else name
        if stem not in known:
            shown = [self.shown(each) for each in known]
            near = nearest(name, shown)
            hint = f"; did you mean {near!r}?" if near else ""
            raise UserMistake(f"{self.what}: expected one of {', '.join(shown)}, got {name!r}{hint}")
        module = f"{self.package}.{stem}"
        if module in sys.modules:  # as of every row that is read slowly
            return import_module(module)
        with _without_collection():
            return import_module(module)

    def constants(self, name: str) -> dict[str, Any]:
        """Returns the plain values that an entry's file sets at its top level, and its docstring as `__doc__`.

        Reads the file's text and does not import it.
        """
        tree = ast.parse(self.texts()[name])
        found: dict[str, Any] = {"__doc__": ast.get_docstring(tree) or ""}
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name) and _is_plain(node.value):
                        found[target.id] = ast.literal_eval(node.value)
        return found

    def help(self, name: str) -> str:
        """An entry's HELP, or the first line of its docstring; it is not imported."""
        found = self.constants(name)
        return str(found.get("HELP") or found["__doc__"].split("\n")[0])

    def describe(self) -> dict[str, str]:
        """Each entry with its help; none is imported."""
        return {name: self.help(name) for name in self.names()}


def registries() -> dict[str, Registry]:
    """Every registry of this package by its folder's name, sorted: a folder whose __init__ has a line REGISTRY = …"""
    return {name: import_module(package).REGISTRY for name, package in sorted(_folders().items())}


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disables garbage collection within the block.

    Imports create objects that last. To scan them again and again costs a tenth of a start.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def _folders() -> dict[str, str]:
    root = Path(__file__).parent
    found: dict[str, str] = {}
    for folder, _, files in os.walk(root, followlinks=True):  # compute and topics are links in a checkout
        path = Path(folder)
        if "__init__.py" in files and _declares((path / "__init__.py").read_text(encoding="utf-8"), "REGISTRY"):
            assert path.name not in found, path
            found[path.name] = ".".join([root.name, *path.relative_to(root).parts])
    return found


@cache
def _texts(folders: tuple[str, ...], word: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for folder in folders:
        for path in Path(folder).glob("*.py"):
            text = path.read_text(encoding="utf-8")
            if path.stem != "__init__" and _declares(text, word):
                found[path.stem] = text
    return dict(sorted(found.items()))


def _declares(text: str, word: str) -> bool:
    return re.search(rf"^{word}\b[^=\n]*=", text, re.MULTILINE) is not None


def _is_plain(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True
