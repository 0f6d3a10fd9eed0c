"""The build digest: over every source that decides bits, whatever it is called, and of what runs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamtrain import _native
from streamtrain.build import build_digest

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "native"
PRINT = "from streamtrain.build import build_digest; print(build_digest())"


def native_sources() -> list[Path]:
    found = [path for path in NATIVE.rglob("*") if path.suffix in (".h", ".cpp", ".cmake")]
    return sorted([*found, NATIVE / "CMakeLists.txt"], key=str)


def test_the_native_part_is_over_every_native_source() -> None:
    listing = "".join(
        f"{path.relative_to(NATIVE).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in native_sources()
    )
    assert hashlib.sha256(listing.encode()).hexdigest() == _native.SOURCE_DIGEST, "build the extension again"


def test_every_kind_of_file_of_native_is_in_it() -> None:
    suffixes = {path.suffix for path in NATIVE.rglob("*") if path.is_file() and path.name != "CMakeLists.txt"}
    assert suffixes == {".h", ".cpp", ".cmake"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package as an installation lays it out, the built extension in it."""
    package = tmp_path / "site" / "streamtrain"
    shutil.copytree(ROOT / "streamtrain", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_native.__file__, package)
    return package


def digest_of(package: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[str(package.parent)]!r}\n{PRINT}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_the_same_sources_elsewhere_are_the_same_build(copy: Path) -> None:
    assert digest_of(copy) == build_digest()


@pytest.mark.parametrize("name", ["compute/input.py", "compute/ops/adam.py", "columns/plan.py"])
def test_python_that_decides_bits_counts_as_it_runs(copy: Path, name: str) -> None:
    with (copy / name).open("a") as source:
        source.write("# another order of operations\n")
    assert digest_of(copy) != build_digest()


def test_a_new_file_of_ops_counts(copy: Path) -> None:
    (copy / "compute" / "ops" / "another.py").write_text("")
    assert digest_of(copy) != build_digest()


def test_what_decides_no_bit_does_not(copy: Path) -> None:
    with (copy / "cli" / "app.py").open("a") as source:
        source.write("# a word\n")
    assert digest_of(copy) == build_digest()
