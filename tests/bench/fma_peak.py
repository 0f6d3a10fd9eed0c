"""The peak of one core in fused multiply-adds, of one instruction set: what a matrix product is measured by."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
FLAGS = {"v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"], "v3": ["-march=x86-64-v3"]}


def fma_turns(isa: str) -> Callable[[int], float]:
    """turns -> the floating-point operations they were, done by the time it returns; needs g++."""
    library = str(Path(tempfile.mkdtemp(prefix="streamtrain-bench-")) / "fma_peak.so")
    command = ["g++", "-std=gnu++20", "-O3", "-fPIC", "-shared", "-Wno-psabi", f"-DST_ISA=isa_{isa}"]
    command += [*FLAGS.get(isa, []), "-I", str(NATIVE), str(HERE / "fma_peak.cpp"), "-o", library]
    subprocess.run(command, check=True)
    turns = ctypes.CDLL(library).fma_turns
    turns.argtypes, turns.restype = [ctypes.c_long], ctypes.c_double
    return turns


def peak_flops(isa: str, seconds: float = 0.3) -> float:
    """The most of many short stretches, operations a second of processor time."""
    turns, count, best = fma_turns(isa), 1 << 16, 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not best:
        start = time.process_time()
        done = turns(count)
        took = time.process_time() - start
        if took < 1e-3:
            count *= 2
        else:
            best = max(best, done / took)
    return best
