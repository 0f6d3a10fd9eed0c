"""A second step allocates nothing: calls of the allocator are counted in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static long calls;
long allocations(void) { return calls; }
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { ++calls; return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { ++calls; return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { ++calls; return __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { ++calls; return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { ++calls; *p = __libc_memalign(a, n); return *p ? 0 : 12; }
"""

SCRIPT = """
import ctypes, importlib.util, sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]).parents[1] / "fakes"))
spec = importlib.util.spec_from_file_location("rigs", sys.argv[1])
rigs = importlib.util.module_from_spec(spec); sys.modules["rigs"] = rigs; spec.loader.exec_module(rigs)
count = ctypes.CDLL(None).allocations
count.restype = ctypes.c_long
for shape in (dict(layers=[{"dense": 8, "activation": "relu"}, {"dense": 8, "activation": "mish"}], categories=2,
                   standardize=True),
              dict(loss="softmax_cross_entropy", layers=[{"dense": 33}]), dict(loss="mean_squared_error"), dict(),
              dict(layers=[{"dense": 8, "activation": "relu"}], threads=3)):
    threads = shape.pop("threads", 1)
    rows = 50 if threads == 1 else 1500   # tiles
    rig = rigs.Rig(rigs.spec_of(**shape), rows=rows, capacity=rows)
    plan, address = rig.plan(threads=threads), rig.address
    rig.step(plan)
    plan.predict(address)
    train, predict = plan.train, plan.predict
    # on a busy machine a thread beside the first meets its first tile, for which it makes its memory, late: in one of
    # the turns, of which there are more than such threads
    counts = [0] * (threads + 1)
    for turn in range(len(counts)):
        counts[turn] = count()
        for _ in range(50):
            train(address); predict(address)
        counts[turn] = count() - counts[turn]
    print(min(counts))
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to build the counter")
def test_a_second_step_allocates_nothing(tmp_path: Path) -> None:
    source, library = tmp_path / "counter.c", tmp_path / "counter.so"
    source.write_text(COUNTER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    rigs = str(Path(__file__).with_name("conftest.py"))
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, rigs], capture_output=True, text=True, check=False,
        env={**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["0"] * 5
