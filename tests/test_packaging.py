"""The source distribution; the wheel that is made from it, and what that installs, are `.ci/run`'s."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("pyproject.toml", "LICENSE", "README.md", "native/CMakeLists.txt", "native/module.cpp", "compute/__init__.py",
          "topics/__init__.py", "streamtrain/broker/kafka_jars.txt")  # fmt: skip


@pytest.mark.full
def test_the_source_distribution_holds_the_sources_and_no_builds(kept_build: Callable[..., Path]) -> None:
    def build(out: Path) -> None:
        command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(out), str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    out = kept_build("sdist", ("native", "compute", "topics", "streamtrain", "pyproject.toml"), build)
    (source,) = out.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert set(NEEDED) <= names
    builds = [name for name in names if name.endswith((".so", ".pyc", ".o")) or name.startswith((".venv", "build/"))]
    assert builds == []
