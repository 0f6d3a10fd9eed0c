"""The engine's registries; importing the engine probes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamtrain.compute import backends
from streamtrain.errors import UserMistake


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
    from streamtrain import _native

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
