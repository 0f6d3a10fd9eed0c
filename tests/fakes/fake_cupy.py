"""CuPy's calls that the CUDA backend makes, on host memory with the host's kernels.

A stream does its work as late as it may, when somebody waits for it, or at once where `eager`: what the backend forgets
to order comes out wrong. Shows that addresses, arguments, graphs, copies and events fit together; proves nothing about
CUDA.
"""

from __future__ import annotations

import ctypes
import re
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np

from streamtrain import _native

_current: list[Any] = []
_streams: dict[int, Any] = {}
devices_used: set[int | None] = set()  # by memory and streams; None: whichever is current


def at(address: int, size_bytes: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size_bytes).from_address(address))


class Memory:
    def __init__(self, content: Any) -> None:
        raw = np.zeros(content.nbytes + 512, np.uint8)
        start = -raw.ctypes.data % 512
        self.bytes = raw[start : start + content.nbytes]
        self.bytes[:] = content.view(np.uint8)
        self.data = SimpleNamespace(ptr=int(self.bytes.ctypes.data))


def on_current_device() -> None:
    devices_used.add(next((context.number for context in reversed(_current) if isinstance(context, Device)), None))


def zeros(count: int, dtype: Any) -> Memory:
    on_current_device()
    return Memory(np.zeros(count, dtype))


class Context:
    def __enter__(self) -> Any:
        _current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert _current.pop() is self


class Device(Context):
    def __init__(self, number: int) -> None:
        self.number = number


class Graph:
    def __init__(self, works: list[Any]) -> None:
        self.works = works

    def launch(self, stream: Any) -> None:
        for work in self.works:
            stream.add(work)


class Stream(Context):
    """Work and waits in order; a wait is the (stream, count of its works) that must be done."""

    def __init__(self, non_blocking: bool) -> None:
        on_current_device()
        self.captured: list[Any] | None = None
        self.ptr = id(self)
        _streams[self.ptr] = self
        self.queue: deque[Any] = deque()
        self.added = self.done = 0
        self.eager = False

    def add(self, work: Any) -> None:
        if self.captured is not None:
            self.captured.append(work)
            return
        self.queue.append(work)
        self.added += 1
        if self.eager:
            self.advance(self.added, patient=False)

    def advance(self, count: int, patient: bool = True) -> None:
        """Works until `count` works are done; without patience until one would have to wait for another stream."""
        while self.done < count:
            work = self.queue[0]
            if isinstance(work, tuple):
                stream, needed = work
                if stream.done < needed and not patient:
                    return
                stream.advance(needed)
            else:
                work()
            self.queue.popleft()
            self.done += 1

    def begin_capture(self) -> None:
        self.captured = []

    def end_capture(self) -> Graph:
        works, self.captured = self.captured or [], None
        return Graph(works)

    def synchronize(self) -> None:
        assert self.captured is None, "a capture may not wait"
        self.advance(self.added)

    def wait_event(self, event: Any) -> None:
        if event.recorded is not None:
            self.add(event.recorded)


class Event:
    def __init__(self, disable_timing: bool) -> None:
        self.recorded: tuple[Stream, int] | None = None

    def record(self, stream: Stream) -> None:
        self.recorded = (stream, stream.added)


class RawModule:
    def __init__(self, code: str, options: tuple[str, ...], name_expressions: list[str]) -> None:
        assert "namespace st" in code and "--fmad=false" in options
        self.names, self.code = name_expressions, code

    def get_function(self, name: str) -> Any:
        assert name in self.names
        calls = self._calls(name)

        def launch(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            assert grid[0] >= 1 and block[0] in (32, 256)
            values = [value.item() for value in arguments]
            _current[-1].add(lambda: [_native.call_kernel(*call, values[first:end]) for call, first, end in calls])

        return launch

    def _calls(self, name: str) -> list[tuple[tuple[str, str], int, int]]:
        """The kernels, and which arguments are whose: of a chain as its text says."""
        chain = re.search(rf"__global__ void {name.removeprefix('st::')}\(([^)]*)\) {{\n(.*?)\n}}", self.code, re.S)
        if chain is None:
            found = re.fullmatch(r"st::(\w+)(?:<(\w+)>)?", name)
            assert found is not None
            return [((found[1], found[2] or ""), 0, 99)]
        given, calls = [each.split()[-1] for each in chain[1].split(", ")], []
        for op, types, names in re.findall(r"chained::(\w+)(?:<(\w+)>)?\((.*?)\);", chain[2]):
            first, count = given.index(names.split(", ")[0]), len(names.split(", "))
            assert given[first : first + count] == names.split(", ")
            calls.append(((op, types), first, first + count))
        return calls


class FakeCublas:
    """libcublas as `_cublas.library()` gives it."""

    handles = 0

    def __init__(self, cupy: Any) -> None:
        self.stream: Any = None

    def cublasCreate_v2(self, handle: Any) -> int:
        FakeCublas.handles += 1
        return 0

    def cublasDestroy_v2(self, handle: Any) -> int:
        FakeCublas.handles -= 1
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        self.stream = _streams[stream.value]
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, workspace: Any, size: Any) -> int:
        return 0

    def cublasSgemm_v2(
        self,
        handle: Any,
        a_op: int,
        b_op: int,
        m: int,
        n: int,
        k: int,
        one: Any,
        a: Any,
        lda: int,
        b: Any,
        ldb: int,
        zero: Any,
        c: Any,
        ldc: int,
    ) -> int:
        def matrix(address: int, rows: int, columns: int, leading: int) -> Any:
            assert leading >= rows
            flat = at(address, leading * columns * 4).view(np.float32)
            return flat.reshape(columns, leading)[:, :rows].T  # column-major

        def work() -> None:
            left = matrix(a.value, k, m, lda).T if a_op else matrix(a.value, m, k, lda)
            right = matrix(b.value, n, k, ldb).T if b_op else matrix(b.value, k, n, ldb)
            matrix(c.value, m, n, ldc)[:] = left @ right

        self.stream.add(work)
        return 0


class CUDARuntimeError(RuntimeError):
    pass


def memcpy_async(to: int, source: int, size_bytes: int, kind: int, stream: int) -> None:
    _streams[stream].add(lambda: ctypes.memmove(to, source, size_bytes))


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
