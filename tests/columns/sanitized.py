"""The drivers of this folder, built once with the address and undefined-behaviour sanitizers.

They share the decoders, among them the format and the kind that only tests have.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
FLAGS = ["-std=gnu++20", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-ffp-contract=off"]
USUAL = ["-march=x86-64-v2"] if platform.machine() == "x86_64" else []  # as built into the extension here
PORTABLE = ["-DST_PORTABLE"]  # as on a machine without the byte shuffle
needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or not NATIVE.is_dir(), reason="needs g++ and the sources"
)


def entries(registry: str) -> str:
    """Returns what native/decode/folder.cmake makes of a folder, with what only tests have."""
    folders = (NATIVE / "decode" / registry, HERE / "native" / registry)
    files = sorted(path for folder in folders for path in folder.glob("*.h"))
    names = "".join(f" X({path.stem})" for path in files if not path.stem.endswith("_encoder"))
    includes = "".join(f'#include "{path}"\n' for path in files)
    return f"{includes}#define ST_{registry.upper()}(X){names}\n"


def alone(kept_build: Callable[..., Path], name: str, flags: list[str]) -> Path:
    """An executable that needs no decoder, built in a moment; skips as drivers()."""

    def make(folder: Path) -> None:
        _run("g++", *FLAGS, *flags, f"-I{NATIVE}", HERE / f"{name}.cpp", "-o", folder / name)

    return kept_build(name + "".join(flags), ["native/base", "native/decode", "tests/columns"], make) / name


def drivers(kept_build: Callable[..., Path], flags: list[str]) -> Path:
    """The folder of the executables; skips where the sanitizers' libraries are not installed."""

    def make(folder: Path) -> None:
        for registry in ("formats", "kinds", "transforms"):
            (folder / f"decode_{registry}.inc").write_text(entries(registry))
        compiler = ["g++", *FLAGS, *flags, f"-I{NATIVE}", f"-I{folder}"]

        def compiled(source: Path) -> Path:
            object_file = folder / f"{source.stem}.o"
            _run(*compiler, "-c", source, "-o", object_file)
            return object_file

        with ThreadPoolExecutor() as pool:
            decoders = pool.map(compiled, sorted((NATIVE / "decode").glob("*.cpp")))
            mains = pool.map(compiled, (HERE / "decoder_driver.cpp", HERE / "ragged_driver.cpp"))
        library = list(decoders)
        for main in mains:
            _run(*compiler, main, *library, "-o", folder / main.stem)

    name = "decoders" + "".join(flags)
    return kept_build(name, ["native/base", "native/decode", "native/ring", "tests/columns"], make)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr and "asan" in done.stderr:
        pytest.skip("needs libasan and libubsan")
    assert done.returncode == 0, done.stderr
