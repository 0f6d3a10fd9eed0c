"""The decoders under the address and undefined-behaviour sanitizers, on records cut, mutated and made up."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from example_format import example_format

from streamtrain.columns.formats import format_names
from tests.columns.sanitized import PORTABLE, USUAL, alone, drivers, needs_compiler
from tests.oracles.records import oracle

pytestmark = [pytest.mark.full, needs_compiler]


BOTH = pytest.mark.parametrize(
    "flags", [USUAL, pytest.param(PORTABLE, marks=pytest.mark.full)], ids=["usual", "portable"]
)


@pytest.fixture(scope="module", params=[USUAL, PORTABLE], ids=["usual", "portable"])
def built(request: pytest.FixtureRequest, kept_build: Callable[..., Path]) -> Path:
    """The folder of the drivers; the glance at numbers, all that a machine without the byte shuffle does otherwise, is
    the arithmetic's too."""
    return drivers(kept_build, request.param)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@BOTH
def test_arithmetic(kept_build: Callable[..., Path], flags: list[str]) -> None:
    assert run(str(alone(kept_build, "arithmetic_driver", flags)), "100000") == "all the same\n"


def test_frames(kept_build: Callable[..., Path]) -> None:
    assert run(str(alone(kept_build, "frame_driver", USUAL)), "3", "200000") == "all hold\n"


def test_media(kept_build: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    pytest.importorskip("soundfile")
    from pictures import jpeg, noise, png
    from sounds import flac, tone, wav

    contents = {"a.jpg": jpeg(noise(9, 7)), "b.png": png(noise()), "c.jpg": jpeg(noise()[..., 0])}
    contents |= {"d.wav": wav(tone(40)), "e.wav": wav(tone(40), subtype="FLOAT"), "f.flac": flac(tone(40))}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    files = [str(tmp_path / name) for name in contents]
    assert run(str(alone(kept_build, "media_driver", USUAL)), "3000", *files) == "all hold\n"


@pytest.mark.full  # a minute of compiling
@pytest.mark.parametrize("name", format_names())
def test_decoders(built: Path, tmp_path: Path, name: str) -> None:
    files = []
    given = example_format(name)
    spec = name if isinstance(given, str) else f"{name}:" + "".join(f"{k}={v}" for k, v in given.items() if k != "name")
    for number, record in enumerate(oracle(name).EXAMPLES):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(record)
    assert "records" in run(str(built / "decoder_driver"), spec, "1", "400", *map(str, files))
