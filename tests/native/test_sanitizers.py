"""The tests of native code again, under AddressSanitizer and UBSan, and its kernels built for arm64 under qemu-user-
static: `pytest -m full tests/native`."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.backends.cpu import value_bits
from streamtrain.compute.spec import Op
from tests.compute.test_ops import KINDS, STEP_FIELDS, bits, given

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
    # sources grouped otherwise than in the wheel: a name that two of them have shows in one of the builds
    command += ["--config-settings=cmake.define.CMAKE_UNITY_BUILD_BATCH_SIZE=20"]
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
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    # a JVM does not run under the preloaded library, so the shared broker is the one that is already there
    environment = {**sanitized_environment, "STREAMTRAIN_TEST_BOOTSTRAP": kafka.bootstrap}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]


NATIVE = ROOT / "native"
COMPILER, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
FLAGS = ["-std=gnu++20", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wno-psabi"]
UNIT = """#define ST_ISA isa_baseline
#define ST_ISA_NAME baseline
#include "base/kernel.h"
namespace st {{
inline namespace ST_ISA {{
#include "kernels/{stem}.h"
}}
}}
"""
VALUE, ARRAY, NULL = 0, 1, 2
STEP_BYTES = 64
SIZES = (1, 33, 256, 1000)


@pytest.fixture(scope="module")
def driver(kept_build: Callable[..., Path]) -> Path:
    """The kernels and kernel_driver.cpp as one program for arm64."""
    for tool, package in ((COMPILER, "g++-aarch64-linux-gnu"), (QEMU, "qemu-user-static")):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian's {package})")
    sources = ["native/base", "native/kernels", "tests/native/kernel_driver.cpp", "tests/native/test_sanitizers.py"]
    return kept_build("arm64", sources, _build_arm64) / "driver"


def _build_arm64(folder: Path) -> None:
    units = [NATIVE / "base" / "registry.cpp", Path(__file__).with_name("kernel_driver.cpp")]
    for header in sorted((NATIVE / "kernels").glob("*.h")):
        units.append(folder / f"{header.stem}.cpp")
        units[-1].write_text(UNIT.format(stem=header.stem))

    def compiled(unit: Path) -> str:
        to = str(folder / f"{unit.stem}.o")
        subprocess.run([COMPILER, *FLAGS, "-I", str(NATIVE), "-c", str(unit), "-o", to], check=True)
        return to

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, units))
    subprocess.run([COMPILER, "-static", *objects, "-o", str(folder / "driver")], check=True)


def text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def argument(native_type: str, content: Any) -> bytes:
    """Serializes an argument as kernel_driver.cpp reads it."""
    if content is None:
        return struct.pack("<Q", NULL) + text(b"")
    if isinstance(content, _native.StepBlock):
        return struct.pack("<Q", ARRAY) + text(ctypes.string_at(content.address, STEP_BYTES))
    if isinstance(content, np.ndarray):
        return struct.pack("<Q", ARRAY) + text(content.tobytes())
    return struct.pack("<Q", VALUE) + text(struct.pack("<Q", value_bits(native_type, content)))


def serialize(op: Op, types: str, values: list[Any]) -> bytes:
    found = [argument(native_type, each) for native_type, each in zip(op.signature(types), values, strict=True)]
    return text(op.name.encode()) + text(types.encode()) + struct.pack("<Q", len(found)) + b"".join(found)


def arrays_of(values: list[Any], answer: memoryview) -> tuple[list[Any], memoryview]:
    """Returns the arrays that the driver wrote, instead of those that it got, and the rest of the answer."""
    found: list[Any] = []
    for each in values:
        size = STEP_BYTES if isinstance(each, _native.StepBlock) else each.nbytes if isinstance(each, np.ndarray) else 0
        raw, answer = answer[:size], answer[size:]
        if isinstance(each, _native.StepBlock):
            ctypes.memmove(each.address, bytes(raw), STEP_BYTES)
        found.append(np.frombuffer(raw, each.dtype).reshape(each.shape) if isinstance(each, np.ndarray) else each)
    return found, answer


def calls() -> Iterator[tuple[Op, str, int, str]]:
    for op in ops.load().values():
        for types in op.types:
            yield from ((op, types, n, kind) for n in SIZES for kind in ("", *(KINDS if n == 33 else ())))


def outcome(op: Op, values: list[Any]) -> list[Any]:
    roles = ("out", "part", "changed")
    changed = [each for arg, each in zip(op.args, values, strict=True) if arg.role in roles and each is not None]
    return [bits(each, STEP_FIELDS) for each in changed]


@pytest.mark.full
def test_arm64_gives_the_same_bits(driver: Path) -> None:
    every = [each for each in calls() if given(*each) is not None]
    assert len(every) > 2 * len(ops.load())
    inputs = [serialize(op, types, given(op, types, n, kind) or []) for op, types, n, kind in every]
    done = subprocess.run(
        [QEMU, str(driver)], input=struct.pack("<Q", len(inputs)) + b"".join(inputs), capture_output=True, check=True
    )
    answer, differing = memoryview(done.stdout), []
    for op, types, n, kind in every:
        here, there = given(op, types, n, kind) or [], given(op, types, n, kind) or []
        _native.call_kernel(op.name, types, here)
        there, answer = arrays_of(there, answer)
        if outcome(op, here) != outcome(op, there):
            differing.append(f"{op.name}-{types}-{n}-{kind}")
    assert not differing and not len(answer)
