"""CUDA source of kernels, from the header text built into the native module: exactly what the host build holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from streamtrain import _native
from streamtrain.compute import ops

# CuPy (13.4 to 14.2) adds -ftz=true, so that subnormals are 0 on the device, and --device-as-default-execution-space
OPTIONS = ("--std=c++17", "--fmad=false")
_INCLUDE = re.compile(r'^\s*#include "([^"]+)".*$', re.M)


def expanded(path: str, texts: dict[str, str], seen: set[str]) -> str:
    """The text of a header with its quoted includes pasted in, each once."""
    if path in seen:
        return ""
    seen.add(path)
    text = texts[path].replace("#pragma once", "")
    return _INCLUDE.sub(lambda match: expanded(match.group(1), texts, seen), text)


Instance = tuple[str, str]   # an op and its types


def source(headers: Iterable[str], chains: Iterable[Sequence[Instance]] = ()) -> str:
    """One translation unit of these kernel headers, and of a kernel for each chain of elementwise ones."""
    texts, seen = _native.kernel_texts(), set[str]()
    base = expanded("base/kernel.h", texts, seen)
    parts = ["".join(expanded(header, texts, seen) for header in sorted(set(headers)))]
    if chains := list(chains):
        stems = sorted({ops.header(op) for chain in chains for op, _ in chain})
        called = "".join(expanded(header, texts, {"base/kernel.h"}) for header in stems)
        parts += ["namespace chained {", "#undef ST_KERNEL", "#define ST_KERNEL ST_INLINE", called, "}",
                  *map(chain_kernel, chains)]  # fmt: skip
    body = "\n".join(parts)
    return f"{base}\nnamespace st {{\ninline namespace ST_ISA {{\n{body}\n}}\n}}\n"


def chain_name(chain: Sequence[Instance]) -> str:
    """Returns the name of the chain's kernel."""
    return "_then_".join(f"{op}_{types}" if types else op for op, types in chain)


def chain_kernel(chain: Sequence[Instance]) -> str:
    """The calls one after the other, each with its own arguments: a thread has the same elements in all of them."""
    parameters, calls = [], []
    for at, (op, types) in enumerate(chain):
        names = [f"a{at}_{number}" for number in range(len(ops.get(op).args))]
        signature = [re.sub(r"\bstep\b", "StepBlock", each) for each in ops.get(op).signature(types)]
        parameters += [f"{type_} {name}" for type_, name in zip(signature, names, strict=True)]
        calls.append(f"chained::{op}{f'<{types}>' if types else ''}({', '.join(names)});")
    return f"__global__ void {chain_name(chain)}({', '.join(parameters)}) {{\n{chr(10).join(calls)}\n}}"


def name_expression(op: str, types: str) -> str:
    """Returns the name expression that NVRTC instantiates."""
    return f"st::{op}<{types}>" if types else f"st::{op}"
