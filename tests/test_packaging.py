"""What is built for users: the source distribution, the wheel made from it, and that wheel outside the checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from streamtrain.build import build_digest

ROOT = Path(__file__).resolve().parents[1]
USE = """
import sys
from pathlib import Path
import streamtrain, streamtrain._native, streamtrain.compute, streamtrain.topics
from streamtrain.broker import distribution
from streamtrain.build import build_digest
site = Path(sys.prefix).resolve()
for module in (streamtrain, streamtrain._native, streamtrain.compute, streamtrain.topics):
    assert Path(module.__file__).resolve().is_relative_to(site), module.__file__
print(build_digest())
assert distribution.JAR_LIST.read_text().count("org.apache.kafka:") >= 10
from importlib.metadata import files
print("\\n".join(str(path) for path in files("streamtrain")))
"""


@pytest.fixture(scope="module")
def built(kept_build: Callable[..., Path]) -> tuple[Path, Path]:
    """The source distribution and the wheel, which is built from it."""

    def build(out: Path) -> None:
        command = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    out = kept_build("dist", ("native", "compute", "topics", "streamtrain", "pyproject.toml"), build)
    (source,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return source, wheel


def test_the_source_distribution_holds_the_sources_and_no_builds(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "LICENSE", "README.md", "native/CMakeLists.txt", "native/module.cpp"):
        assert needed in names
    assert {"compute/__init__.py", "topics/__init__.py", "streamtrain/broker/kafka_jars.txt"} <= names
    assert [
        name for name in names if name.endswith((".so", ".pyc", ".o")) or name.startswith((".venv", "build/"))
    ] == []


def test_the_wheel_holds_the_package_and_nothing_beside_it(built):
    with zipfile.ZipFile(built[1]) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"streamtrain", "streamtrain-0.1.0.dist-info"}
    for needed in ("py.typed", "_native.pyi", "broker/kafka_jars.txt", "compute/__init__.py", "topics/snapshots.py"):
        assert f"streamtrain/{needed}" in names
    assert [name for name in names if name.endswith((".cpp", ".txt.in", "CMakeLists.txt"))] == []
    assert any(name.startswith("streamtrain/_native.") and name.endswith(".so") for name in names)


def test_the_wheel_works_outside_the_checkout(built, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(built[1])], check=True)
    done = subprocess.run([python, "-I", "-c", USE], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    digest, *installed = done.stdout.split()
    assert digest == build_digest(), "a wheel made from the source distribution is the build of the checkout"
    assert {path.split("/")[0] for path in installed} <= {"streamtrain", "streamtrain-0.1.0.dist-info", ".."}
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    assert not {"compute", "topics", "native", "tests"} & {path.name for path in site.iterdir()}
