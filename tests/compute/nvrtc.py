"""NVRTC of the nvidia-cuda-nvrtc wheel by ctypes: compiles without a driver or a GPU."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@cache
def library() -> Any:
    """libnvrtc; skips where the wheel is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations if spec and spec.submodule_search_locations else ():
        for path in Path(root).glob("*/lib/libnvrtc.so.*"):
            return ctypes.CDLL(str(path))
    pytest.skip("libnvrtc is not installed (pip install nvidia-cuda-nvrtc-cu12)")


def compile_cubin(source: str, names: Sequence[str], arch: str, options: Sequence[str]) -> dict[str, str]:
    """Compiles for `arch` ("sm_90"); lowered name by name expression. Fails the test with the log otherwise."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None) == 0
    try:
        for name in names:
            assert nvrtc.nvrtcAddNameExpression(program, name.encode()) == 0
        flags = [flag.encode() for flag in (*options, f"--gpu-architecture={arch}")]
        code = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        assert code == 0, log.value.decode()
        lowered = {}
        for name in names:
            found = ctypes.c_char_p()
            assert nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(found)) == 0, name
            lowered[name] = (found.value or b"").decode()
        assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0 and size.value > 1000
        return lowered
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
