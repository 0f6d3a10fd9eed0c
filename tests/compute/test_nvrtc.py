"""Every kernel compiles for CUDA from the text built into the module, without a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from looped import over

from streamtrain.compute import ops
from streamtrain.compute.backends._source import OPTIONS, chain_name, name_expression, source
from streamtrain.compute.fusion import is_elementwise
from streamtrain.compute.spec import Call, Op, PerRow

pytestmark = pytest.mark.full

# what CuPy's RawModule adds behind ours
FLAGS = (*OPTIONS, "-ftz=true", "--device-as-default-execution-space")
DEVICE_OPS = [op for op in ops.load().values() if not op.host_only]


@over("arch", ["sm_80", "sm_90"])
def test_all_kernels_compile(nvrtc: Any, arch: str) -> None:
    names = [name_expression(op.name, types) for op in DEVICE_OPS for types in op.types]
    lowered = nvrtc.compile(source(ops.header(op.name) for op in DEVICE_OPS), names, arch, FLAGS)
    assert len(set(lowered.values())) == len(names)


@over("op", DEVICE_OPS, ids=lambda op: op.name)
def test_each_header_stands_alone(nvrtc: Any, op: Op) -> None:
    """Compiles only to PTX, which takes half the time. The test above compiles what becomes of it."""
    nvrtc.compile(source([ops.header(op.name)]), [name_expression(op.name, op.types[0])], "compute_90", FLAGS)


@over("arch", ["sm_80", "sm_90"])
def test_chains_compile(nvrtc: Any, arch: str) -> None:
    """Compiles a chain of the first two elementwise ops, and a chain of all of them."""
    rows = PerRow(8)
    found = [(op.name, op.types[0]) for op in DEVICE_OPS
             if is_elementwise(Call(op.name, op.types[0], (rows, *[None] * (len(op.args) - 1))))]  # fmt: skip
    assert len(found) > 40
    chains = [found[:2], found]
    names = [name_expression(chain_name(chain), "") for chain in chains]
    lowered = nvrtc.compile(source([], chains), names, arch, FLAGS)
    assert len(set(lowered.values())) == 2


def test_a_broken_kernel_is_reported(nvrtc: Any) -> None:
    with pytest.raises(AssertionError, match="undefined_name"):
        nvrtc.compile(source([]) + "__global__ void f() { undefined_name(); }", ["f"], "sm_90", FLAGS)
