"""Line numbers of the keys of a TOML text, which tomllib does not give. Reads only text that tomllib has accepted."""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_BLANK = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(r'"""(?:[^\\]|\\[\s\S])*?"{3,5}' + r"|'''[\s\S]*?'{3,5}" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'")
_SCALAR = re.compile(r"[^,\]}#\n]*")


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.tables: dict[Path, int] = {}  # entries seen of each array of tables

    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match[0]

    def dotted_key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self.skip(_SPACE)
            part = self.skip(_KEY)
            parts.append(part[1:-1] if part[0] in "\"'" else part)
            self.skip(_SPACE)
            if self.peek() != ".":
                return parts
            self.at += 1

    def note(self, table: Path, parts: list[str]) -> Path:
        """Notes the line of the key and of the tables it opens on its way; the first mention of a path counts."""
        path = table
        for part in parts:
            path = (*path, part)
            self.lines.setdefault(path, self.line())
        return path

    def document(self) -> dict[Path, int]:
        table: Path = ()
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return self.lines
            table = self.header() if self.peek() == "[" else self.pair(table)

    def header(self) -> Path:
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        path = self.entered(self.dotted_key(), array)
        self.at += 2 if array else 1
        return path

    def entered(self, parts: list[str], array: bool) -> Path:
        """The path of a header; a step into an array of tables means its newest entry."""
        path: Path = ()
        for number, part in enumerate(parts):
            path = self.note(path, [part])
            if array and number == len(parts) - 1:
                self.tables[path] = self.tables.get(path, -1) + 1
            if path in self.tables:
                path = (*path, self.tables[path])
                self.lines.setdefault(path, self.line())
        return path

    def pair(self, table: Path) -> Path:
        path = self.note(table, self.dotted_key())
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(path)
        return table

    def value(self, path: Path) -> None:
        opening = self.peek()
        if opening in "\"'":
            self.skip(_STRING)
        elif opening == "{":
            self.inside("}", path, named=True)
        elif opening == "[":
            self.inside("]", path, named=False)
        else:
            self.skip(_SCALAR)

    def inside(self, closing: str, path: Path, *, named: bool) -> None:
        self.at += 1
        index = 0
        while True:
            self.skip(_BLANK)
            if self.peek() == closing:
                self.at += 1
                return
            if named:
                self.pair(path)
            else:
                self.lines.setdefault((*path, index), self.line())
                self.value((*path, index))
            index += 1


def toml_lines(text: str) -> dict[Path, int]:
    """Line (from 1) of every key, table and array element of a valid TOML text, by its path."""
    return _Scanner(text).document()
