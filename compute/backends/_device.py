"""The parts of CuPy that the CUDA backend needs: buffers, streams, copies, kernels by name. CuPy is imported when a
device is created."""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from streamtrain.compute import ops
from streamtrain.compute.backends._source import OPTIONS, Instance, chain_name, name_expression, source
from streamtrain.compute.spec import Op

THREADS = 256        # per block of an elementwise kernel
MAX_BLOCKS = 4096    # a grid stride does the rest
TO_DEVICE, TO_HOST = 1, 2   # cudaMemcpyKind
SCALARS: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u64": np.uint64}


def import_cupy() -> Any:
    """CuPy, or ImportError."""
    return importlib.import_module("cupy")


class Device:
    """A CUDA device, `number` modulo how many there are, with a compute and an upload stream."""

    def __init__(self, number: int) -> None:
        self.cupy = import_cupy()
        self.runtime = self.cupy.cuda.runtime
        self.handle = self.cupy.cuda.Device(number % max(int(self.runtime.getDeviceCount()), 1))
        with self.handle:
            self.compute = self.cupy.cuda.Stream(non_blocking=True)
            self.upload = self.cupy.cuda.Stream(non_blocking=True)
        self._functions: dict[tuple[Instance, ...], Any] = {}

    def buffer(self, size_bytes: int) -> Any:
        """Zeroed device memory; its address is `.data.ptr`. CuPy's allocations start on 512 bytes."""
        with self.handle, self.compute:
            memory = self.cupy.zeros(max(size_bytes, 64), np.uint8)
            self.compute.synchronize()
            return memory

    def event(self) -> Any:
        with self.handle:
            return self.cupy.cuda.Event(disable_timing=True)

    def copy(self, to: int, source: int, size_bytes: int, kind: int, stream: Any) -> None:
        """Asynchronous where the host side is pinned or registered."""
        if size_bytes:
            self.runtime.memcpyAsync(to, source, size_bytes, kind, stream.ptr)

    def load(self, instances: Iterable[Instance], chains: Iterable[Sequence[Instance]] = ()) -> None:
        """Compiles these kernels (op, types), and of each chain one, from the text built into the native module."""
        kernels, chained = sorted(set(instances)), sorted(set(map(tuple, chains)))
        names: dict[tuple[Instance, ...], str] = {(instance,): name_expression(*instance) for instance in kernels}
        names |= {chain: name_expression(chain_name(chain), "") for chain in chained}
        text = source((ops.header(op) for op, _ in kernels), chained)
        with self.handle:
            module = self.cupy.RawModule(code=text, options=OPTIONS, name_expressions=list(names.values()))
            for chain, name in names.items():
                self._functions[chain] = module.get_function(name)

    def launch(self, op: Op, types: str, values: list[Any]) -> None:
        """On the current stream; arrays as addresses (0: null)."""
        self.launch_chain([(op.name, types)], [values])

    def launch_chain(self, chain: Sequence[Instance], values: Sequence[Sequence[Any]]) -> None:
        """Elementwise ops on as many elements, each with its own arguments, as one launch; or one op of any kind."""
        found = [ops.get(name) for name, _ in chain]
        grid, block = shape_of(found[0], {arg.name: its for arg, its in zip(found[0].args, values[0], strict=True)})
        typed = tuple(
            SCALARS.get(native, np.uint64)(value) for op, (_, types), its in zip(found, chain, values, strict=True)
            for native, value in zip(op.signature(types), its, strict=True)
        )
        self._functions[tuple(chain)]((grid,), (block,), typed)

    def register(self, address: int, size_bytes: int) -> bool:
        """Pins host memory for this process, so that copies from it overlap; False (and a warning) if it cannot be."""
        try:
            with self.handle:
                self.runtime.hostRegister(address, size_bytes, 0)
        except self.runtime.CUDARuntimeError as error:
            logging.getLogger(__name__).warning("cannot pin %d bytes, copies will be slower: %s", size_bytes, error)
            return False
        return True


def shape_of(op: Op, sizes: dict[str, Any]) -> tuple[int, int]:
    """(blocks, threads per block) of a launch."""
    if op.each:
        turns = math.prod(int(sizes[name]) for name in op.each)
        return min(max(-(-turns // THREADS), 1), MAX_BLOCKS), THREADS
    rows = math.prod(int(sizes[name]) for name in op.rows)   # 1 where the op names none
    return min(max(rows, 1), 1 << 20), 32


def instances_of(calls: Iterable[Instance]) -> set[Instance]:
    """The kernels behind these ops on CUDA: of those that have another way there, what it launches."""
    given = list(calls)
    found = {(op, types) for op, types in given if not ops.get(op).host_only}
    return found | {(launched, "") for op, _ in given for launched in ops.get(op).launches}
