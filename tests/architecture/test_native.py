"""Native includes go down one order, the ring's words are written through its ends, and bindings only convert."""

from __future__ import annotations

import re
from pathlib import Path

# a folder may include those before it
ORDER = [
    "base", "kernels", "state", "ring", "plan", "kafka", "source", "decode", "train", "predict", "repack", "bindings"
]  # fmt: skip
INCLUDE = re.compile(r'^#include "(\w+)/', re.MULTILINE)
WORDS = re.compile(r"\.(?:store|fetch_add|compare_exchange_\w+)\(")
CONTROL = re.compile(r"\bcontrol\(\)")


def sources(root: Path, tracked: list[str], folder: str = "") -> dict[str, str]:
    """Text by name of the C++ files below native/."""
    names = [name for name in tracked if name.startswith(f"native/{folder}") and name.endswith((".h", ".cpp"))]
    assert names
    return {name: (root / name).read_text() for name in names}


def test_includes_go_down(root: Path, tracked: list[str]) -> None:
    wrong = []
    for name, text in sources(root, tracked).items():
        folder = name.split("/")[1]
        allowed = ORDER[: ORDER.index(folder) + 1] if folder in ORDER else ORDER  # module.cpp stands above all
        wrong += [f"{name} includes {theirs}" for theirs in INCLUDE.findall(text) if theirs not in allowed]
    assert wrong == []


def test_every_folder_has_its_place(tracked: list[str]) -> None:
    assert {name.split("/")[1] for name in tracked if re.match(r"native/\w+/", name)} == set(ORDER)


def test_bindings_write_no_shared_word(root: Path, tracked: list[str]) -> None:
    assert [name for name, text in sources(root, tracked, "bindings/").items() if WORDS.search(text)] == []


def test_the_rings_words_are_reached_through_its_ends(root: Path, tracked: list[str]) -> None:
    """Who may write which word is said once, in ring/words.h; everybody else asks an end."""
    reaching = [name for name, text in sources(root, tracked).items() if CONTROL.search(text)]
    assert [name for name in reaching if not name.startswith("native/ring/")] == []
