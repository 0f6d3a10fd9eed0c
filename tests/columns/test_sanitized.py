"""The decoders under the address and undefined-behaviour sanitizers, on records cut, mutated and made up."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streamtrain.columns.formats import format_names, record_format

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
FLAGS = ["-std=gnu++20", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-ffp-contract=off"]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None or not NATIVE.is_dir(), reason="needs g++ and the sources")


def entries(registry: str, *more: Path) -> str:
    """What native/decode/folder.cmake makes of a folder; `more`: folders that tests add."""
    files = sorted(path for folder in (NATIVE / "decode" / registry, *more) for path in folder.glob("*.h"))
    names = "".join(f" X({path.stem})" for path in files if not path.stem.endswith("_encoder"))
    includes = "".join(f'#include "{path}"\n' for path in files)
    return f"{includes}#define ST_{registry.upper()}(X){names}\n"


@pytest.fixture(scope="module")
def built(kept_build: Callable[..., Path]) -> Callable[..., Path]:
    """The executable of a driver; skips where the sanitizers' libraries are not installed."""

    def build(name: str, *flags: str) -> Path:
        def make(folder: Path) -> None:
            for registry in ("formats", "kinds"):
                (folder / f"decode_{registry}.inc").write_text(entries(registry))
            sources = [str(HERE / f"{name}.cpp"), *map(str, (NATIVE / "decode").glob("*.cpp"))]
            command = ["g++", *FLAGS, *flags, f"-I{NATIVE}", f"-I{folder}", *sources, "-o", str(folder / name)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if "cannot find" in made.stderr and "asan" in made.stderr:
                pytest.skip("needs libasan and libubsan")
            assert made.returncode == 0, made.stderr

        return kept_build("".join([name, *flags]), ["native", "tests/columns"], make) / name

    return build


@pytest.fixture(scope="module", params=["usual", "portable"])
def flags(request: pytest.FixtureRequest) -> list[str]:
    """As built into the extension here, and as on a machine without the byte shuffle."""
    if request.param == "portable":
        return ["-DST_PORTABLE"]
    return (
        ["-march=x86-64-v2"]
        if "x86_64" in subprocess.run(["g++", "-dumpmachine"], capture_output=True, text=True).stdout
        else []
    )


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_arithmetic(built: Callable[..., Path], flags: list[str]) -> None:
    assert run(str(built("arithmetic_driver", *flags)), "100000") == "all the same\n"


@pytest.fixture(scope="module")
def driver(built: Callable[..., Path], flags: list[str]) -> Path:
    return built("decoder_driver", *flags)


@pytest.mark.parametrize("name", format_names())
def test_decoders(driver: Path, tmp_path: Path, name: str) -> None:
    files = []
    for number, record in enumerate(record_format(name).EXAMPLES):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(record)
    assert "records" in run(str(driver), name, "1", "400", *map(str, files))
