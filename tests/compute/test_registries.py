"""The engine's registries and the settings declared in them: what each takes, reads and says; choosing a backend."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import backends, layers, optimizers
from streamtrain.compute.options import Flag, Number, Option, Problem, Several, Whole, Word, problems, read
from streamtrain.errors import UserMistake

DECLARED: dict[str, tuple[Option, str]] = {   # each with what it takes, in words
    "size": (Whole(least=1, most=9, help=""), "a whole number from 1 to 9"),
    "rate": (Number(least=0, below=1, default=0.5, help=""), "a number from 0 below 1"),
    "scale": (Number(above=0, most=4, default=1, help=""), "a number above 0 to 4"),
    "any": (Number(default=-3, help=""), "a number"),
    "way": (Word(of=("left", "right"), default="left", help=""), "one of left, right"),
    "loud": (Flag(default=False, help=""), "true or false"),
    "found": (Word(of=lambda: ["late"], default="late", help=""), "one of late"),
    "window": (Several(of=Whole(most=5, help=""), least=2, most=2, default=(1, 2), help=""),
               "an array of 2, each a whole number from 0 to 5"),
    "steps": (Several(of=Whole(most=5, help=""), least=0, most=3, default=(), help=""),
              "an array of 0 to 3, each a whole number from 0 to 5"),
}  # fmt: skip
OPTIONS = {name: option for name, (option, _) in DECLARED.items()}
WORDS = {name: option.takes() for name, option in OPTIONS.items()}
GOOD: list[tuple[str, Any, Any]] = [
    ("size", 1, 1), ("size", 9, 9), ("rate", 0, 0.0), ("rate", 0.999, 0.999), ("scale", 4, 4.0),
    ("any", -1e300, -1e300), ("way", "right", "right"), ("loud", True, True), ("window", [0, 5], (0, 5)),
    ("steps", [], ()), ("steps", (1, 2, 3), (1, 2, 3)),
]  # fmt: skip
WRONG: list[tuple[str, Any]] = [
    ("size", 0), ("size", 10), ("size", 1.0), ("size", True), ("size", "1"), ("rate", -0.1), ("rate", 1),
    ("rate", True), ("rate", math.nan), ("rate", "0"), ("scale", 0), ("scale", 4.1), ("any", math.inf),
    ("any", None), ("loud", 1), ("loud", "true"), ("way", "up"), ("way", 1), ("way", ["left"]),
    ("found", "left"), ("window", [1]), ("window", [1, 2, 3]), ("window", [1, 6]),
    ("window", 1), ("steps", [1.0]), ("steps", "12"),
]  # fmt: skip


def test_each_says_what_it_takes() -> None:
    assert {name: words for name, (_, words) in DECLARED.items()} == WORDS


@over(("name", "given", "value"), GOOD)
def test_read(name: str, given: Any, value: Any) -> None:
    settings = {"size": 3, name: given}
    assert list(problems(settings, OPTIONS, "x")) == []
    found = read(settings, OPTIONS)
    assert found[name] == value and type(found[name]) is type(value) and list(found) == list(OPTIONS)


@over(("name", "given"), WRONG)
def test_refused(name: str, given: Any) -> None:
    found = list(problems({"size": 3, name: given}, OPTIONS, "x"))
    assert found == [Problem(name, WORDS[name], given, OPTIONS[name].names())]
    assert str(found[0]) == f"expected {WORDS[name]}, got {given!r}"


def test_what_is_unknown_and_what_is_missing() -> None:
    unknown, missing = problems({"raet": 1}, OPTIONS, "option of x")
    assert str(unknown) == f"unknown option of x; allowed: {', '.join(OPTIONS)}"
    assert str(next(problems({"raet": 1}, {}, "option of x"))) == "unknown option of x; it takes none"
    assert str(missing) == "missing, expected a whole number from 1 to 9"


@over("kind", layers.names())
def test_the_settings_of_a_layer(kind: str) -> None:
    options = layers.options(kind)
    assert not set(list(options)[1:]) & set(layers.names())   # a table would name two layers
    for example in layers.examples(kind):
        assert list(layers.wrong(example)) == []
        found, settings = layers.parse(example)
        assert found == kind and list(settings) == list(layers.get(kind).OPTIONS)
    for name, option in options.items():
        for word in option.names():
            assert any(example.get(name) == word for example in layers.examples(kind)), (name, word)


@over("name", optimizers.names())
def test_the_settings_of_an_optimizer_all_have_defaults_and_help(name: str) -> None:
    options = optimizers.options(name)
    assert list(problems({}, options, name)) == [] and all(option.help for option in options.values())
    assert not {"name", "learning_rate"} & set(options)


def test_importing_the_engine_imports_no_cupy_and_starts_nothing() -> None:
    code = """
import sys, threading
import streamtrain.compute.model, streamtrain.compute.metrics
from streamtrain.compute import ops, backends
ops.load(); backends.describe()
assert "cupy" not in sys.modules and threading.active_count() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_kernel_digest_covers_every_header() -> None:
    texts = _native.kernel_texts()
    native = Path(__file__).parents[2] / "native"
    assert {f"kernels/{path.name}" for path in (native / "kernels").glob("*.h")} <= set(texts)
    assert all((native / path).read_text() == text for path, text in texts.items())


def test_choice_of_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.get("cuda"), "answers", lambda: None)
    assert backends.choose() == "cuda"
    assert backends.choose(priorities={"cpu": 200}) == "cpu"
    assert backends.choose(priorities={"cuda": -1}) == "cpu"
    assert backends.choose("cpu") == "cpu"
    assert backends.priority_names() == {"cpu": "BACKEND_PRIORITY_CPU", "cuda": "BACKEND_PRIORITY_GPU"}
    monkeypatch.setattr(backends.get("cuda"), "answers", lambda: "no GPU")
    assert backends.choose() == "cpu"
    with pytest.raises(UserMistake, match="backend cuda: no GPU"):
        backends.choose("cuda")
