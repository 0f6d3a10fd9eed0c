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
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[str(package.parent)]!r}\n{PRINT}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout.strip() == build_digest()) == same
