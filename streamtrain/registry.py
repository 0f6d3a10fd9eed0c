"""Registries: folders whose files are entries, and modules with an entry for each decorated function.

A file is an entry if a line of its own begins with the registry's word. Names and help are read from its text, so that
a program starts quickly; the entry is imported when it is asked for.
"""

from __future__ import annotations

import ast
import difflib
import gc
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from streamtrain.errors import UserMistake


def nearest(name: str, allowed: Iterable[str]) -> str:
    """The allowed name most like `name`, or nothing."""
    names = list(allowed)
    folded = name.lower().replace("-", "_")
    return next(
        iter(difflib.get_close_matches(folded, names, 1, 0.6) or difflib.get_close_matches(name, names, 1, 0.6)), ""
    )


class Described(Protocol):
    """An entry of a module's registry."""

    @property
    def help(self) -> str: ...


E = TypeVar("E", bound=Described)
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")


class BaseRegistry(ABC):
    """Entries by name, of a package or a module called `package`.

    `what` names an entry in errors; with `dashed`, people see dashes where a name has underscores.
    """

    def __init__(self, package: str, what: str, dashed: bool = False) -> None:
        self.package, self.what, self.dashed = package, what, dashed

    @abstractmethod
    def names(self) -> list[str]:
        """Returns the names of the entries, sorted."""

    @abstractmethod
    def help(self, name: str) -> str:
        """Returns an entry's line of help."""

    @abstractmethod
    def get(self, name: str) -> Any:
        """Returns the entry by its name or as people write it; UserMistake with the nearest name if there is none."""

    def display_name(self, name: str) -> str:
        """A name as people write it."""
        return name.replace("_", "-") if self.dashed else name

    def describe(self) -> dict[str, str]:
        """Each entry with its help."""
        return {name: self.help(name) for name in self.names()}

    def _known(self, name: str) -> str:
        """Returns the name of an entry as code has it; UserMistake if there is none."""
        known = self.names()
        own = name.replace("-", "_") if self.dashed else name
        if own not in known:
            display_names = [self.display_name(each) for each in known]
            near = nearest(name, display_names)
            hint = f"; did you mean {near!r}?" if near else ""
            raise UserMistake(f"{self.what}: expected one of {', '.join(display_names)}, got {name!r}{hint}")
        return own


class ModuleRegistry(BaseRegistry, Generic[F, P, E]):
    """Small entries, all in one module: functions, each under `@REGISTRY.entry(…)` and named as the function is.

    An entry is `make(function, …)`, with the arguments of its decorator.
    """

    def __init__(self, module: str, what: str, make: Callable[Concatenate[F, P], E]) -> None:
        super().__init__(module, what)
        self._make = make
        self._entries: dict[str, E] = {}

    def entry(self, *arguments: P.args, **named: P.kwargs) -> Callable[[F], F]:
        """Adds the function that it decorates, and returns it as it is."""

        def add(function: F) -> F:
            self._entries[function.__name__] = self._make(function, *arguments, **named)
            return function

        return add

    def names(self) -> list[str]:
        return sorted(self._entries)

    def help(self, name: str) -> str:
        return self._entries[name].help

    def get(self, name: str) -> E:
        return self._entries[self._known(name)]


class Registry(BaseRegistry):
    """The entries of one package: its modules that declare `word` at their top level, each named by its file's stem."""

    def __init__(self, package: str, what: str, word: str = "HELP", dashed: bool = False) -> None:
        super().__init__(package, what, dashed)
        self.word = word
        self._loaded: dict[str, ModuleType] = {}  # by the name that was given

    def files(self) -> Mapping[str, Path]:
        """The file of each entry, by name, sorted."""
        return _files(tuple(import_module(self.package).__path__), self.word)

    def names(self) -> list[str]:
        """The entries found, sorted; none is imported."""
        return list(self.files())

    def get(self, name: str) -> ModuleType:
        """The entry's module."""
        if name not in self._loaded:
            with _without_collection():
                self._loaded[name] = import_module(f"{self.package}.{self._known(name)}")
        return self._loaded[name]

    def constants(self, name: str) -> Mapping[str, Any]:
        """Returns the plain values that an entry's file sets at its top level, and its docstring as `__doc__`.

        Reads the file's text and does not import it.
        """
        return _constants(self.files()[name])

    def help(self, name: str) -> str:
        """An entry's HELP, or the first line of its docstring; it is not imported, and not parsed again if it was."""
        found = vars(self._loaded[name]) if name in self._loaded else self.constants(name)
        return str(found.get("HELP") or found["__doc__"].split("\n")[0])


def registries() -> dict[str, BaseRegistry]:
    """Returns the registry of every folder and module that has a line REGISTRY = …, by its name, sorted."""
    return {name: import_module(module).REGISTRY for name, module in sorted(_homes().items())}


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
def _homes() -> dict[str, str]:
    root = Path(__file__).parent
    found: dict[str, str] = {}
    for folder, _, files in os.walk(root, followlinks=True):  # compute and topics are links in a checkout
        for path in (Path(folder) / file for file in files if file.endswith(".py")):
            if _declares(path.read_text(encoding="utf-8"), "REGISTRY"):
                home = path.parent if path.stem == "__init__" else path.with_suffix("")
                assert home.name not in found, home
                found[home.name] = ".".join([root.name, *home.relative_to(root).parts])
    return found


@cache
def _files(folders: tuple[str, ...], word: str) -> Mapping[str, Path]:
    paths = (path for folder in folders for path in Path(folder).glob("*.py") if path.stem != "__init__")
    found = {path.stem: path for path in paths if _declares(path.read_text(encoding="utf-8"), word)}
    return dict(sorted(found.items()))


@cache
def _constants(path: Path) -> Mapping[str, Any]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: dict[str, Any] = {"__doc__": ast.get_docstring(tree) or ""}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and _is_plain(node.value):
                    found[target.id] = ast.literal_eval(node.value)
    return found


def _declares(text: str, word: str) -> bool:
    return re.search(rf"^{word}\b[^=\n]*=", text, re.MULTILINE) is not None


def _is_plain(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True
