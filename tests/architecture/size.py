"""A file is one thing: it stays short, says what it is for, and leaves nothing for later."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import nodes, text

FILE_LINES = 400
FUNCTION_LINES = 50
LINE_COLUMNS = 120
DOCSTRING_LINES = 5
NATIVE = (".h", ".cpp", ".cu", ".cuh")
LATER = re.compile("TO" + r"DO|FIX" + "ME|X" + "XX")


def test_files_are_short(tracked):
    lengths = {name: text(name).count("\n") for name in tracked if name.endswith((".py", *NATIVE))}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


def test_functions_are_short(python_trees):
    long = []
    for name, tree in python_trees.items():
        for node in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                long.append(f"{name}:{node.lineno} {node.name}: {lines} lines")
    assert long == []


def test_native_lines_fit(tracked):
    long = []
    for name in tracked:
        if name.endswith(NATIVE):
            for number, line in enumerate(text(name).splitlines(), 1):
                if len(line) > LINE_COLUMNS:
                    long.append(f"{name}:{number} {len(line)} columns")
    assert long == []


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
    left = []
    for name in code:
        for number, line in enumerate(text(name).splitlines() if LATER.search(text(name)) else (), 1):
            if LATER.search(line):
                left.append(f"{name}:{number} {line.strip()}")
    assert left == []
