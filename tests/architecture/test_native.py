"""Native includes go down one order, and what belongs in one place of the native sources is in no other."""

from __future__ import annotations

import re

from streamtrain import _native
from tests.architecture.sources import text

# a folder may include those before it
ORDER = [
    "base", "kernels", "state", "ring", "plan", "kafka", "source", "decode", "train", "predict", "repack", "bindings"
]  # fmt: skip
INCLUDE = re.compile(r'^#include "(\w+)/', re.MULTILINE)
WORDS = re.compile(r"\.(?:store|fetch_add|compare_exchange_\w+)\(")
CONTROL = re.compile(r"\bcontrol\(\)")
FILLED_BY_HAND = re.compile(r"\bmake_decoder\(|\bclear_behind\(|\bRowSink\s+\w+\s*[{=;]|\bRowSink\s*\{")


def sources(tracked: list[str], folder: str = "") -> dict[str, str]:
    """Text by name of the C++ files below native/."""
    names = [name for name in tracked if name.startswith(f"native/{folder}") and name.endswith((".h", ".cpp"))]
    assert names
    return {name: text(name) for name in names}


def test_includes_go_down(tracked: list[str]) -> None:
    wrong = []
    for name, code in sources(tracked).items():
        folder = name.split("/")[1]
        allowed = ORDER[: ORDER.index(folder) + 1] if folder in ORDER else ORDER  # module.cpp stands above all
        wrong += [f"{name} includes {theirs}" for theirs in INCLUDE.findall(code) if theirs not in allowed]
    assert wrong == []


def test_every_folder_has_its_place(tracked: list[str]) -> None:
    assert {name.split("/")[1] for name in tracked if re.match(r"native/\w+/", name)} == set(ORDER)


def test_bindings_write_no_shared_word(tracked: list[str]) -> None:
    assert [name for name, code in sources(tracked, "bindings/").items() if WORDS.search(code)] == []


def test_the_rings_words_are_reached_through_its_ends(tracked: list[str]) -> None:
    """Who may write which word is said once, in ring/words.h; everybody else asks an end."""
    reaching = [name for name, code in sources(tracked).items() if CONTROL.search(code)]
    assert [name for name in reaching if not name.startswith("native/ring/")] == []


def test_only_the_batch_filler_turns_rows_into_slots(tracked: list[str]) -> None:
    """Nobody else decodes, has a sink or clears behind rows."""
    others = {name: code for name, code in sources(tracked).items() if not name.startswith("native/decode/")}
    assert len(others) > 50
    assert [name for name, code in others.items() if FILLED_BY_HAND.search(code)] == []


def test_settings_of_librdkafka_are_in_the_native_table_alone(tracked: list[str]) -> None:
    names = {name for name, value, *_ in _native.kafka_settings() if value is not None}
    setting = re.compile("|".join(f'"{re.escape(name)}"' for name in sorted(names)))
    python = [name for name in tracked if name.startswith("streamtrain/") and name.endswith(".py")]
    assert [(name, found) for name in python for found in setting.findall(text(name))] == []
