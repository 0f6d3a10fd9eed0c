"""The tests of native code again, under AddressSanitizer and UBSan: `pytest -m full tests/native`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE_TESTS = {"compute": ["tests/compute", "tests/train", "tests/kafka"], "columns": ["tests/columns"]}
# one counts allocations, which the sanitizers add to; the other compiles for a GPU and runs nothing
LEFT_OUT = ("tests/compute/test_allocation.py", "tests/compute/test_nvrtc.py")
# a sanitized build has no speed to measure, and takes memory of its own
TIMED = "not nanosecond and not linear_time and not vector_code and not bomb_does_not_burst"
PROBE = """
import ctypes
from streamtrain import _native
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "_native" in line}
assert any("__asan_init" in open(path, "rb").read().decode("latin-1") for path in loaded), loaded
"""


def library(name: str) -> Path:
    """A library of the compiler's, or a skip where it has none."""
    done = subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    path = Path(done.stdout.strip())
    if not path.is_absolute():
        pytest.skip(f"the compiler has no {name}")
    return path.resolve()


@pytest.fixture(scope="module")
def sanitized_python(kept_build: Callable[..., Path]) -> list[str]:
    """A Python that imports a sanitized build, and every other package from here."""
    folder = kept_build("sanitized", ["native", "streamtrain", "compute", "topics"], _build)
    return [str(folder / "bin" / "python"), "-P"]  # -P: not the checkout's own folders


def _build(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", str(ROOT)]
    command += ["--config-settings=cmake.define.ST_SANITIZE=ON", f"--config-settings=build-dir={folder / 'build'}"]
    subprocess.run(command, check=True)
    # a .pth in a folder named by a .pth is not read: the editable install here does not shadow the sanitized one
    paths = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True
    )
    here = [path for path in sys.path if Path(path).name == "site-packages"]
    (Path(paths.stdout.strip()) / "here.pth").write_text("\n".join(here) + "\n")


@pytest.fixture
def sanitized_environment() -> dict[str, str]:
    # Python's own allocations at exit and other libraries' are not ours to look for leaks in
    return {
        **os.environ,
        "LD_PRELOAD": f"{library('libasan.so')}:{library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", NATIVE_TESTS)
def test_native_tests_pass_under_the_sanitizers(kafka, sanitized_python, sanitized_environment, tmp_path, part):
    subprocess.run([*sanitized_python, "-c", PROBE], check=True, env=sanitized_environment)
    # not captured: a report would die with the process that was to show it
    command = [*sanitized_python, "-m", "pytest", "-q", "--capture=no", "-p", "no:cacheprovider", *NATIVE_TESTS[part]]
    command += ["-k", TIMED, *(f"--ignore={name}" for name in LEFT_OUT)]
    # a copy of the tests and of the sources some read: beside the checkout's own package that would be the one imported
    for folder in ("tests", "native", "docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    # a JVM does not run under the preloaded library, so the shared broker is the one that is already there
    environment = {**sanitized_environment, "STREAMTRAIN_TEST_BOOTSTRAP": kafka.bootstrap}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
