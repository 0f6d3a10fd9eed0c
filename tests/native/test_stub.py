"""The stub that type checkers read is that of the built module."""

from __future__ import annotations

import difflib

from tests.native.stub import STUB, generate, normalize


def test_the_stub_is_that_of_the_built_module() -> None:
    committed, built = normalize(STUB.read_text()).splitlines(), generate().splitlines()
    changes = list(difflib.unified_diff(committed, built, STUB.name, "the built module", lineterm="", n=1))
    assert not changes, "\n".join([f"{STUB.name} is stale: run `python -m tests.native.stub`", *changes[:40]])
