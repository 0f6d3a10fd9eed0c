"""The scanner against tomllib: every path of a document has a line, and the line holds the key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from looped import over

from streamtrain.job.lines import Path, toml_lines

DOCUMENT = '''# a comment = [1]
name = "a \\" # not a comment"

[kafka]
bootstrap.servers = 'x#y'          # dotted
"quoted.key" = """many
lines = "2"
"""
literal = \'\'\'[not]
a.table\'\'\'

[model]
layers = [ # [
  { dense = 64, activation = "relu" },
  { dense = 32, nested = [[1, 2],
    [3]] },   # }
]
when = 2026-01-31T00:00:00Z
empty = {}
none = []
[a."b.c".d]
e = -1.5e3
[[runs]]
x = 1
[[runs]]
x = 2
[runs.inner]
y = true
'''


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def test_every_path_has_a_line() -> None:
    found = toml_lines(DOCUMENT)
    assert set(found) == set(paths(tomllib.loads(DOCUMENT)))
    # Windows' line ends, and none at the end of the last line
    assert toml_lines("a = 1\r\nb = [\r\n 2]") == {("a",): 1, ("b",): 2, ("b", 0): 3}


@over(
    ("path", "line"),
    [
        (("name",), 2),
        (("kafka", "bootstrap", "servers"), 5),
        (("kafka", "quoted.key"), 6),
        (("kafka", "literal"), 9),
        (("model", "layers"), 13),
        (("model", "layers", 0, "activation"), 14),
        (("model", "layers", 1), 15),
        (("model", "layers", 1, "nested", 1, 0), 16),
        (("a", "b.c", "d", "e"), 22),
        (("runs", 0, "x"), 24),
        (("runs", 1, "x"), 26),
        (("runs", 1, "inner", "y"), 28),
    ],
)
def test_lines(path: Path, line: int) -> None:
    assert toml_lines(DOCUMENT)[path] == line
