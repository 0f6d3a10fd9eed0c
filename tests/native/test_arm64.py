"""The kernels built for arm64 give the bits of this processor's: `pytest -m full tests/native/test_arm64.py`.

Built by the cross compiler of Debian's g++-aarch64-linux-gnu and run under qemu-user-static, over the examples of all
ops and those with hostile values in them.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
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
from tests.compute.hostile import KINDS, bits
from tests.compute.test_hostile import given
from tests.compute.test_ops import STEP_FIELDS

ROOT = Path(__file__).resolve().parents[2]
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
    sources = ["native/base", "native/kernels", "tests/native/kernel_driver.cpp", "tests/native/test_arm64.py"]
    return kept_build("arm64", sources, _build) / "driver"


def _build(folder: Path) -> None:
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
    """As kernel_driver.cpp reads it."""
    if content is None:
        return struct.pack("<Q", NULL) + text(b"")
    if isinstance(content, _native.StepBlock):
        return struct.pack("<Q", ARRAY) + text(ctypes.string_at(content.address, STEP_BYTES))
    if isinstance(content, np.ndarray):
        return struct.pack("<Q", ARRAY) + text(content.tobytes())
    return struct.pack("<Q", VALUE) + text(struct.pack("<Q", value_bits(native_type, content)))


def told(op: Op, types: str, values: list[Any]) -> bytes:
    found = [argument(native_type, each) for native_type, each in zip(op.signature(types), values, strict=True)]
    return text(op.name.encode()) + text(types.encode()) + struct.pack("<Q", len(found)) + b"".join(found)


def arrays_of(values: list[Any], answer: memoryview) -> tuple[list[Any], memoryview]:
    """Those that the driver wrote, in the place of the ones it was given, and what is behind them."""
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
    asked = [told(op, types, given(op, types, n, kind) or []) for op, types, n, kind in every]
    done = subprocess.run(
        [QEMU, str(driver)], input=struct.pack("<Q", len(asked)) + b"".join(asked), capture_output=True, check=True
    )
    answer, differing = memoryview(done.stdout), []
    for op, types, n, kind in every:
        here, there = given(op, types, n, kind) or [], given(op, types, n, kind) or []
        _native.call_kernel(op.name, types, here)
        there, answer = arrays_of(there, answer)
        if outcome(op, here) != outcome(op, there):
            differing.append(f"{op.name}-{types}-{n}-{kind}")
    assert not differing and not len(answer)
