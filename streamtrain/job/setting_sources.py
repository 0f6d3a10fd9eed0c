"""The sources of settings: the file, over it the environment, over it flags; each value keeps its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtrain.job.lines import Path, toml_lines
from streamtrain.job.mistakes import Mistake, show_value

ENVIRONMENT_PREFIX = "STREAMTRAIN_"
APART = ("kafka", "registry")  # sections of properties: never shown, never published
_TEXT_SECTIONS = ("name", *APART)  # whose values are texts whatever they look like


@dataclass
class Gathered:
    """All settings as one tree but [kafka] and [registry]; `apart` holds those sections' tables, one a source, the
    strongest last."""

    name: str  # of the file
    tree: dict[str, Any] = field(default_factory=dict)
    apart: dict[str, list[tuple[Any, Path]]] = field(default_factory=lambda: {name: [] for name in APART})
    places: dict[Path, str] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def where(self, path: Path) -> str:
        """The place of a path: its own, else that of the nearest table around it, else the file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.name

    def at(self, path: Path) -> Any:
        """Returns the value at a path; raises LookupError where there is none."""
        value: Any = self.tree
        for part in path:
            if not isinstance(value, dict | list):
                raise LookupError(part)
            value = value[part]  # type: ignore[index]
        return value

    def put(self, path: Path, value: Any, place: str) -> None:
        """Sets one value over what is there."""
        if path[0] in APART:
            tables = self.apart[str(path[0])]
            for part in reversed(path[1:]):
                value = {part: value}
            tables.append((value, (path[0], f"#{len(tables)}")))
            self.places[tables[-1][1]] = place
            return
        table = self.tree
        for part in path[:-1]:
            inner = table.get(str(part))
            if isinstance(inner, str) and path[0] == "topics":
                inner = {"name": inner}
            table[str(part)] = inner if isinstance(inner, dict) else {}
            table = table[str(part)]
        table[str(path[-1])] = value
        self.places = {known: text for known, text in self.places.items() if known[: len(path)] != path}
        self.places[path] = place


def _parse_value(path: Path, text: str) -> Any:
    """A value given outside the file: TOML where it is valid, else the text itself."""
    if path[0] in _TEXT_SECTIONS:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def read_file(gathered: Gathered, text: str) -> None:
    """Adds a job file's text."""
    try:
        gathered.tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        gathered.mistakes.append(Mistake(gathered.name, "", f"not valid TOML: {error}"))
        return
    gathered.places = {path: f"{gathered.name}:{line}" for path, line in toml_lines(text).items()}
    for name in APART:
        if name in gathered.tree:
            gathered.apart[name].append((gathered.tree.pop(name), (name,)))


def read_environment(gathered: Gathered, environment: Mapping[str, str], sections: Sequence[str]) -> None:
    """Adds STREAMTRAIN_NAME and STREAMTRAIN_<SECTION>__<NAME>; deeper tables by more double underscores."""
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        parts = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if len(parts) < 2 and parts != ["name"]:
            continue
        section, *names = parts
        place = f"environment {variable}"
        if section not in sections:
            gathered.mistakes.append(Mistake.unknown(place, section, sections, "section"))
            continue
        if section in APART:
            names = [name.replace("_", ".") for name in names]
        path = (section, *names)
        gathered.put(path, _parse_value(path, environment[variable]), place)


def read_sets(gathered: Gathered, sets: Sequence[str], sections: Sequence[str], place: str = "--set") -> None:
    """Adds `train.workers=4` texts, as `--set` takes them."""
    for text in sets:
        key, equals, value = text.partition("=")
        path = _key_path(key.strip())
        if not equals or not path:
            gathered.mistakes.append(Mistake(place, "", "section.name=value", show_value(text)))
        elif path[0] not in sections:
            gathered.mistakes.append(Mistake.unknown(place, str(path[0]), sections, "section"))
        elif len(path) == 1 and path != ("name",):
            gathered.mistakes.append(Mistake(place, "", "section.name=value", show_value(text)))
        else:
            gathered.put(path, _parse_value(path, value.strip()), place)


def _key_path(key: str) -> Path:
    """A TOML key's parts; nothing where it is none."""
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(table, dict):
        part, table = next(iter(table.items()), ("", 0))
        path.append(part)
    return tuple(path) if "\n" not in key else ()
