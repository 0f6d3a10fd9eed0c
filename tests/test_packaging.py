"""The build's digest, the source distribution, and the wheels that cibuildwheel would make."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from streamtrain import _native
from streamtrain.build import build_digest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ASKED = PROJECT["tool"]["cibuildwheel"]
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


@pytest.mark.full
def test_it_would_make_one_for_each_python_and_machine() -> None:
    pytest.importorskip("cibuildwheel", reason="not installed (extra test-full)")
    command = [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--print-build-identifiers", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    made = re.findall(r"^cp3(\d+)-manylinux_(\w+)$", done.stdout, re.MULTILINE)
    assert len(made) == len(done.stdout.split())
    assert {machine for _, machine in made} == {"x86_64", "aarch64"}
    for machine in ("x86_64", "aarch64"):
        minors = sorted(int(minor) for minor, its in made if its == machine)
        assert minors == list(range(minors[0], minors[-1] + 1)) and minors[-1] >= 14
        assert PROJECT["project"]["requires-python"] == f">=3.{minors[0]}"


def test_what_tries_them_is_there() -> None:
    assert set(ASKED["test-extras"]) <= set(PROJECT["project"]["optional-dependencies"])
    assert all((ROOT / name).exists() for name in ASKED["test-sources"])
    named = [word for line in ASKED["test-command"] for word in shlex.split(line) if word.startswith("tests/")]
    assert named and all((ROOT / name).exists() for name in named)
    wanted = {re.split(r"[<>=]", each)[0]: each for each in PROJECT["project"]["optional-dependencies"]["test"]}
    for each in ASKED["test-requires"]:
        assert wanted[re.split(r"[<>=]", each)[0]] == each  # the same range


NATIVE = ROOT / "native"


def test_the_native_part_is_over_every_native_source() -> None:
    files = {path for path in NATIVE.rglob("*") if path.is_file() and path.name != "CMakeLists.txt"}
    assert {path.suffix for path in files} == {".h", ".cpp", ".cmake"}, "a kind of file that may not be in the digest"
    listing = "".join(
        f"{path.relative_to(NATIVE).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in sorted([*files, NATIVE / "CMakeLists.txt"], key=str)
    )
    assert hashlib.sha256(listing.encode()).hexdigest() == _native.SOURCE_DIGEST, "build the extension again"


@pytest.mark.parametrize(
    ("name", "more", "same"),
    [
        ("", "", True),
        ("compute/input.py", "# another order of operations\n", False),
        ("compute/ops/adam.py", "# another order of operations\n", False),
        ("columns/plan.py", "# another order of operations\n", False),
        ("compute/ops/another.py", "", False),
        ("cli/app.py", "# a word\n", True),
    ],
)
def test_python_that_decides_bits_counts_as_it_runs(tmp_path: Path, name: str, more: str, same: bool) -> None:
    """In the package as an installation lays it out, the built extension in it; what decides no bit does not count."""
    package = tmp_path / "site" / "streamtrain"
    shutil.copytree(ROOT / "streamtrain", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_native.__file__, package)
    if name:
        with (package / name).open("a") as source:
            source.write(more)
    program = (
        f"import sys; sys.path[:0] = {[str(package.parent)]!r}\nimport streamtrain.build as b; print(b.build_digest())"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout.strip() == build_digest()) == same
