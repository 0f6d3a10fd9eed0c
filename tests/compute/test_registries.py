"""Registries read their folders; importing the engine probes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from streamtrain.compute import backends, layers, losses, ops, optimizers
from streamtrain.compute.registry import Registry
from streamtrain.errors import UserMistake

ALL = (ops, layers, losses, optimizers, backends)


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.__name__)
def test_every_file_is_an_entry_with_a_line_of_help(registry: ModuleType) -> None:
    folder = Path(registry.__file__ or "").parent
    assert registry.names() == sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))
    for name, text in registry.describe().items():
        assert text and "\n" not in text, name


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UserMistake, match="did you mean 'adam'"):
        optimizers.get("adm")


def test_a_new_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "made_here"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text('HELP = "the first"\n')
    (package / "_shared.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Registry("made_here", "thing").describe() == {"one": "the first"}


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
    assert len(ops.kernel_digest()) == 64


def test_choice_of_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.get("cuda"), "answers", lambda: None)
    assert backends.choose() == "cuda"
    assert backends.choose(cpu_priority=200) == "cpu"
    assert backends.choose(gpu_priority=-1) == "cpu"
    assert backends.choose("cpu") == "cpu"
    monkeypatch.setattr(backends.get("cuda"), "answers", lambda: "no GPU")
    assert backends.choose() == "cpu"
    with pytest.raises(UserMistake, match="backend cuda: no GPU"):
        backends.choose("cuda")
