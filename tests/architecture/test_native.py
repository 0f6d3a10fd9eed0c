"""Native includes go down one order, a thing of one place is in no other, and `_native.pyi` names what is built."""

from __future__ import annotations

import ast
import enum
import re
from typing import Any

import pytest

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


def sources(tracked: list[str]) -> dict[str, str]:
    return {name: text(name) for name in tracked if name.startswith("native/") and name.endswith((".h", ".cpp"))}


def test_includes_go_down(tracked: list[str]) -> None:
    wrong = []
    for name, code in sources(tracked).items():
        folder = name.split("/")[1]
        allowed = ORDER[: ORDER.index(folder) + 1] if folder in ORDER else ORDER  # module.cpp stands above all
        wrong += [f"{name} includes {theirs}" for theirs in INCLUDE.findall(code) if theirs not in allowed]
    assert wrong == []


def test_every_folder_has_its_place(tracked: list[str]) -> None:
    assert {name.split("/")[1] for name in tracked if re.match(r"native/\w+/", name)} == set(ORDER)


@pytest.mark.parametrize(
    ("pattern", "is_its_place"),
    [
        (WORDS, lambda name: not name.startswith("native/bindings/")),
        (CONTROL, lambda name: name.startswith("native/ring/")),  # who may write which word is in ring/words.h alone
        (FILLED_BY_HAND, lambda name: name.startswith("native/decode/")),  # the batch filler turns rows into slots
    ],
    ids=["a shared word is written", "the ring's words are reached", "rows are decoded"],
)
def test_a_thing_is_done_in_its_place(tracked: list[str], pattern: re.Pattern[str], is_its_place: Any) -> None:
    doing = [name for name, code in sources(tracked).items() if pattern.search(code)]
    assert doing and [name for name in doing if not is_its_place(name)] == []


def test_settings_of_librdkafka_are_in_the_native_table_alone(tracked: list[str]) -> None:
    names = {name for name, value, *_ in _native.kafka_settings() if value is not None}
    setting = re.compile("|".join(f'"{re.escape(name)}"' for name in sorted(names)))
    python = [name for name in tracked if name.startswith("streamtrain/") and name.endswith(".py")]
    assert [(name, found) for name in python for found in setting.findall(text(name))] == []


def public_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Returns the names that a stub's body defines."""
    names: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
        elif isinstance(node, ast.Assign):
            names |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return names


def stub_names(body: list[ast.stmt]) -> dict[str, set[str]]:
    """Each public name of the stub, with the public members where it is a class, those of its bases in the stub too."""
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}

    def members(node: ast.ClassDef) -> set[str]:
        inherited = [members(classes[base.id]) for base in node.bases if getattr(base, "id", "") in classes]
        own = {name for name in public_names(node.body) if not name.startswith("_")}
        return own.union(*inherited)

    public = {name: node for name, node in public_names(body).items() if not name.startswith("_")}
    return {name: members(node) if isinstance(node, ast.ClassDef) else set() for name, node in public.items()}


def built_names() -> dict[str, set[str]]:
    """The same of the built module."""
    names: dict[str, set[str]] = {}
    for name, value in vars(_native).items():
        members = dir(value) if isinstance(value, type) else ()
        if isinstance(value, enum.EnumType):
            members = value.__members__
        if not name.startswith("_"):
            names[name] = {member for member in members if not member.startswith("_")}
    return names


def test_the_stub_and_the_built_module_agree():
    stub = stub_names(ast.parse(text("streamtrain/_native.pyi")).body)
    built = built_names()
    assert set(stub) == set(built)
    for name in built:
        value = getattr(_native, name)
        if not (isinstance(value, type) and issubclass(value, Exception)):  # whose inherited members no stub repeats
            assert stub[name] == built[name], name
