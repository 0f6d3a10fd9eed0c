"""The registry of ops: each file declares the signatures of the kernels of native/kernels/<stem>.h.

Those of activations are declared by compute/activations.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache

from streamtrain import _native
from streamtrain.compute import activations
from streamtrain.compute.spec import Op
from streamtrain.errors import StreamtrainError
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "op")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
_ops: dict[str, Op] = {}
_headers: dict[str, str] = {}   # where in native the kernel of an op lies


def check(op: Op, where: str) -> None:
    """Raises when the declaration differs from the kernel built into the module, in any instruction set."""
    for types in op.types:
        instances = _built().get((op.name, types), [])
        expected, expected_host = op.signature(types), op.host_only
        if not instances:
            raise StreamtrainError(f"{where}: expected kernel {op.name}<{types}>, got none; is it under ST_EXPORT?")
        for isa, arguments, host_only in instances:
            if arguments != expected or host_only != expected_host:
                raise StreamtrainError(
                    f"{where}: kernel {op.name}<{types}> for {isa}: expected ({', '.join(expected)}), "
                    f"got ({', '.join(arguments)}); make declaration and kernel agree"
                )


@cache
def _built() -> dict[tuple[str, str], list[tuple[str, list[str], bool]]]:
    """Instruction set, arguments, whether of the host alone; of each kernel by its name and types."""
    found: dict[tuple[str, str], list[tuple[str, list[str], bool]]] = defaultdict(list)
    for name, types, isa, arguments, host_only in _native.kernels():
        found[name, types].append((isa, arguments, host_only))
    return found


def load() -> dict[str, Op]:
    """All ops by kernel name, each compared with its kernel's C++ signature once."""
    if not _ops:
        found: dict[str, Op] = {}
        declared = [(stem, f"compute/ops/{stem}.py", REGISTRY.get(stem).OPS) for stem in names()]
        declared += [(name, "compute/activations.py", activations.ops_of(name)) for name in activations.names()]
        for stem, where, its in declared:
            for op in its:
                check(op, where)
                found[op.name] = op
                _headers[op.name] = f"kernels/{stem}.h"
        _ops.update(found)
        _built.cache_clear()  # half a megabyte
    return _ops


def get(name: str) -> Op:
    return load()[name]


def header(name: str) -> str:
    """Returns the header, below native, that an op's kernel lies in."""
    return _headers[get(name).name]
