"""The real librdkafka, of which chosen calls never return or fail: for processes of their own, which load it first."""

from __future__ import annotations

import os
import shutil
import subprocess
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest

from streamtrain import _native
from streamtrain.kafka import library
from streamtrain.run.roles import predictor

SOURCE = Path(__file__).with_suffix(".cpp")


def built(folder: Path) -> Path:
    """The library; skips where there is no compiler."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    output, real = folder / "failing_librdkafka.so", library.find()
    command = ["g++", "-std=c++20", "-shared", "-fPIC", f'-DREAL="{real}"', str(SOURCE), "-o", str(output)]
    subprocess.run([*command, "-Wl,--no-as-needed", str(real), f"-Wl,-rpath,{real.parent}"], check=True)
    return output


# how long a deaf client is silent, 10 s otherwise; and between ingest's looks at its topic, 5 s otherwise
SOON = """
from streamtrain.kafka import renewing
from streamtrain.run.roles import ingest
renewing._DEAF_S = 0.5
ingest._METADATA_S = 1.0
"""


def environment(path: Path, folder: Path, faults: str, soon: bool = False) -> dict[str, str]:
    """The environment of a command that runs on the library at `path`, with all its processes; `folder` becomes theirs.

    `soon`: they take a client that does not answer for a deaf one after half a second.
    """
    loads = f"from streamtrain import _native\n_native.kafka_load({str(path)!r})\n"
    (folder / "sitecustomize.py").write_text(loads + (SOON if soon else ""))
    return {"PYTHONPATH": str(folder), "FAULTS": faults}


def run_predictor(
    path: Path, faults: str, timeout_ms: int, config: predictor.Config, stop: Event, rewinds: Any = None
) -> None:
    """`predictor.answer` on the library at `path`, with transactions of `timeout_ms`; the process does nothing else.

    `rewinds`: a multiprocessing.Value that is kept up to date.
    """

    def report(counters: dict[str, int]) -> None:
        if rewinds is not None:
            rewinds.value = counters["rewinds"]

    os.environ["FAULTS"] = faults
    _native.kafka_load(str(path))
    settings = predictor.producer_settings
    predictor.producer_settings = lambda of: {**settings(of), "transaction.timeout.ms": str(timeout_ms)}
    predictor.answer(config, stop, report)
