"""CuPy's calls that the CUDA backend makes, on host memory with the host's kernels.

Shows that the backend's addresses, arguments, graphs and copies fit together where no GPU is; it proves nothing about
CUDA.
"""

from __future__ import annotations

import ctypes
import re
from types import SimpleNamespace
from typing import Any

import numpy as np

from streamtrain import _native

_current: list[Any] = []


def at(address: int, size_bytes: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))


def run(work: Any) -> None:
    """Now, or when the graph is launched that is being captured."""
    if _current and _current[-1].captured is not None:
        _current[-1].captured.append(work)
    else:
        work()


class Memory:
    def __init__(self, content: Any) -> None:
        raw = np.zeros(content.nbytes + 512, np.uint8)
        start = -raw.ctypes.data % 512
        self.bytes = raw[start : start + content.nbytes]
        self.bytes[:] = content.view(np.uint8)
        self.data = SimpleNamespace(ptr=int(self.bytes.ctypes.data))


def zeros(count: int, dtype: Any) -> Memory:
    return Memory(np.zeros(count, dtype))


def ones(count: int, dtype: Any) -> Memory:
    return Memory(np.ones(count, dtype))


class Context:
    def __enter__(self) -> Any:
        _current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert _current.pop() is self


class Device(Context):
    captured = None

    def __init__(self, number: int) -> None:
        self.number = number


class Graph:
    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def launch(self, stream: Any) -> None:
        for work in self.works:
            work()


class Stream(Context):
    def __init__(self, non_blocking: bool) -> None:
        self.captured: list[Any] | None = None
        self.ptr = id(self)

    def begin_capture(self) -> None:
        self.captured = []

    def end_capture(self) -> Graph:
        works, self.captured = self.captured or [], None
        return Graph(works)

    def synchronize(self) -> None:
        assert self.captured is None, "a capture may not wait"

    def wait_event(self, event: Any) -> None:
        pass


class Event:
    def __init__(self, disable_timing: bool) -> None:
        pass

    def record(self, stream: Stream) -> None:
        pass


class RawModule:
    def __init__(self, code: str, options: tuple[str, ...], name_expressions: list[str]) -> None:
        assert "namespace st" in code and "--fmad=false" in options
        self.names = name_expressions

    def get_function(self, name: str) -> Any:
        assert name in self.names
        found = re.fullmatch(r"st::(\w+)(?:<(\w+)>)?", name)
        assert found is not None
        op, types = found[1], found[2] or ""

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            assert grid[0] >= 1 and block[0] in (32, 256)
            values = [value.item() for value in arguments]
            run(lambda: _native.call_kernel(op, types, values))

        return launch


class FakeCublas:
    """libcublas as `_cublas.library()` gives it."""

    def cublasCreate_v2(self, handle: Any) -> int:
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, workspace: Any, size: Any) -> int:
        return 0

    def cublasSgemm_v2(
        self, handle: Any, a_op: int, b_op: int, m: int, n: int, k: int, one: Any, a: Any, lda: int, b: Any, ldb: int,
        zero: Any, c: Any, ldc: int,
    ) -> int:
        def matrix(address: int, rows: int, columns: int, leading: int) -> Any:
            assert leading >= rows
            flat = at(address, leading * columns * 4).view(np.float32)
            return flat.reshape(columns, leading)[:, :rows].T   # column-major

        def work() -> None:
            left = matrix(a.value, k, m, lda).T if a_op else matrix(a.value, m, k, lda)
            right = matrix(b.value, n, k, ldb).T if b_op else matrix(b.value, k, n, ldb)
            matrix(c.value, m, n, ldc)[:] = left @ right

        run(work)
        return 0


class CUDARuntimeError(RuntimeError):
    pass


def memcpy_async(to: int, source: int, size_bytes: int, kind: int, stream: int) -> None:
    run(lambda: ctypes.memmove(to, source, size_bytes))


def host_register(address: int, size_bytes: int, flags: int) -> None:
    if size_bytes == 13:
        raise CUDARuntimeError("cannot register")


def alloc_pinned_memory(size_bytes: int) -> Any:
    memory = zeros(size_bytes, np.uint8)
    return SimpleNamespace(ptr=memory.data.ptr, memory=memory)


runtime = SimpleNamespace(
    memcpyAsync=memcpy_async, hostRegister=host_register, CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: 1
)
cuda = SimpleNamespace(
    Device=Device, Stream=Stream, Event=Event, runtime=runtime, alloc_pinned_memory=alloc_pinned_memory
)
