"""The real librdkafka, of which chosen calls never return or fail: for processes of their own, which load it first."""

from __future__ import annotations

import os
import shutil
import subprocess
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from streamtrain import _native
from streamtrain.kafka import library
from streamtrain.run.roles import predictor

SOURCE = Path(__file__).with_suffix(".cpp")


def built(folder: Path) -> Path:
    """The library; skips where there is no compiler."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    made, real = folder / "failing_librdkafka.so", library.find()
    command = ["g++", "-std=c++20", "-shared", "-fPIC", f'-DREAL="{real}"', str(SOURCE), "-o", str(made)]
    subprocess.run([*command, "-Wl,--no-as-needed", str(real), f"-Wl,-rpath,{real.parent}"], check=True)
    return made


def run_predictor(path: Path, faults: str, timeout_ms: int, config: predictor.Config, stop: Event) -> None:
    """`predictor.run` on the library at `path`, with transactions of `timeout_ms`; the process does nothing else."""
    os.environ["FAULTS"] = faults
    _native.kafka_load(str(path))
    predictor.TRANSACTION_TIMEOUT_MS = timeout_ms
    predictor.run(config, stop)
