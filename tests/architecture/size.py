"""A file is one thing: it stays short, says what it is for, and leaves nothing for later."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import places, text

FILE_LINES, TEST_FILE_LINES = 400, 800
FUNCTION_LINES = 50
LINE_COLUMNS = 120
DOCSTRING_LINES = 5
NATIVE = (".h", ".cpp", ".cu", ".cuh")
LATER = re.compile("TO" + r"DO|FIX" + "ME|X" + "XX")


def test_files_are_short(tracked):
    lengths = {name: text(name).count("\n") for name in tracked if name.endswith((".py", *NATIVE))}
    limits = {name: TEST_FILE_LINES if name.startswith("tests/") else FILE_LINES for name in lengths}
    assert {name: lines for name, lines in lengths.items() if lines > limits[name]} == {}


def test_functions_are_short(python_trees):
    functions = places(python_trees, ast.FunctionDef, ast.AsyncFunctionDef)
    lengths = {f"{where} {node.name}": node.end_lineno - node.lineno + 1 for _, node, where in functions}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def lines_of(names):
    return {f"{name}:{at}": line for name in names for at, line in enumerate(text(name).splitlines(), 1)}


def test_native_lines_fit(tracked):
    lines = lines_of(name for name in tracked if name.endswith(NATIVE))
    assert {place: len(line) for place, line in lines.items() if len(line) > LINE_COLUMNS} == {}


def test_modules_say_what_they_are_for(python_trees):
    wrong = []
    for name, tree in python_trees.items():
        doc = ast.get_docstring(tree)
        if doc is None and tree.body:
            wrong.append(f"{name}: no docstring")
        elif doc is not None and len(doc.strip().splitlines()) > DOCSTRING_LINES:
            wrong.append(f"{name}: docstring of more than {DOCSTRING_LINES} lines")
    assert wrong == []


def test_nothing_is_left_for_later(tracked):
    code = [name for name in tracked if name.endswith((".py", ".pyi", ".txt", ".toml", ".yml", *NATIVE))]
    lines = lines_of(name for name in code if LATER.search(text(name)))
    assert {place: line for place, line in lines.items() if LATER.search(line)} == {}
