"""CUDA source of kernels, from the header text built into the native module: exactly what the host build holds."""

from __future__ import annotations

import re
from collections.abc import Iterable

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


def header_of(op: str) -> str:
    """The header of native/kernels an op's kernel lies in."""
    for stem in ops.names():
        if any(found.name == op for found in ops.REGISTRY.get(stem).OPS):
            return f"kernels/{stem}.h"
    raise KeyError(op)


def source(headers: Iterable[str]) -> str:
    """One translation unit of these kernel headers."""
    texts, seen = _native.kernel_texts(), set[str]()
    base = expanded("base/kernel.h", texts, seen)
    kernels = "".join(expanded(header, texts, seen) for header in sorted(set(headers)))
    return f"{base}\nnamespace st {{\ninline namespace ST_ISA {{\n{kernels}\n}}\n}}\n"


def name_expression(op: str, types: str) -> str:
    """What NVRTC is asked to instantiate."""
    return f"st::{op}<{types}>" if types else f"st::{op}"
