"""cuBLAS by ctypes: CuPy's own binding refuses to be captured in a graph. Loaded only by the CUDA backend."""

from __future__ import annotations

import contextlib
import ctypes
import re
import weakref
from pathlib import Path
from typing import Any

from streamtrain.errors import StreamtrainError

PLAIN, TRANSPOSED = 0, 1   # cublasOperation_t
# NVIDIA's advice for Hopper; older devices need 4 MiB. Only with a workspace of its own is a captured graph
# deterministic.
WORKSPACE_BYTES = 32 << 20


def library(cupy: Any) -> Any:
    """The libcublas of CuPy's choice, or the one the loader finds."""
    before = _loaded()   # PyTorch has one of its own
    with contextlib.suppress(ImportError):
        _ = cupy.cuda.cublas   # CuPy looks for the library (in NVIDIA's wheels too) and loads it when first asked
    fresh = [name for name in _loaded() if name not in before]
    for name in [*fresh, *before, "libcublas.so.12", "libcublas.so.13", "libcublas.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise StreamtrainError("cuBLAS: expected libcublas.so, got none; install the extra cuda12 or cuda13")


def _loaded() -> list[str]:
    """The paths of those in this process."""
    return list(dict.fromkeys(re.findall(r"(/\S*libcublas\.so[.\d]*)$", Path("/proc/self/maps").read_text(), re.M)))


class Cublas:
    """A handle on one stream of the current device with a workspace of its own; column-major, as cuBLAS is."""

    def __init__(self, cupy: Any, stream: int, workspace: int) -> None:
        self._library, self._handle = library(cupy), ctypes.c_void_p()
        self._check(self._library.cublasCreate_v2(ctypes.byref(self._handle)), "cublasCreate")
        # a follower makes a plan per snapshot; at the interpreter's end the driver frees what is left
        weakref.finalize(self, self._library.cublasDestroy_v2, self._handle).atexit = False
        # setting the stream resets the workspace: in this order
        self._check(self._library.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)), "cublasSetStream")
        size = ctypes.c_size_t(WORKSPACE_BYTES)
        code = self._library.cublasSetWorkspace_v2(self._handle, ctypes.c_void_p(workspace), size)
        self._check(code, "cublasSetWorkspace")
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)

    @staticmethod
    def _check(code: int, what: str) -> None:
        if code != 0:
            raise StreamtrainError(f"{what}: expected success, got cuBLAS status {code}")

    def product(
        self, a_op: int, b_op: int, m: int, n: int, k: int, a: int, a_columns: int, b: int, b_columns: int, c: int,
        c_columns: int,
    ) -> None:
        """C[m, n] = op(A)[m, k] op(B)[k, n] in float32; *_columns are leading dimensions, a, b, c addresses."""
        pointer = ctypes.c_void_p
        code = self._library.cublasSgemm_v2(
            self._handle, a_op, b_op, m, n, k, ctypes.byref(self._one), pointer(a), a_columns, pointer(b), b_columns,
            ctypes.byref(self._zero), pointer(c), c_columns,
        )
        self._check(code, "cublasSgemm")
