"""The GPU bench runs: with no GPU it says so, on the stand-in and on a GPU its figures are there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamtrain.compute.backends import cuda

BENCH = Path(__file__).with_name("bench_cuda.py")


def assert_figures(lines: list[str]) -> None:
    figures = [json.loads(line) for line in lines]
    assert all(figure["ours"] > 0 for figure in figures)
    names = [figure["bench"] for figure in figures]
    for rows in (256, 4096):
        wanted = ("host time of a step, {} rows", "28-64-64-1 Adam {} rows", "copy to device, slot of {} rows")
        assert {f"cuda {name.format(rows)}" for name in wanted} <= set(names)


def test_the_bench_runs_or_says_why_not() -> None:
    done = subprocess.run([sys.executable, str(BENCH), "--seconds", "1"], capture_output=True, text=True, check=True)
    reason = cuda.answers()
    if reason is None:
        assert_figures(done.stdout.splitlines())
    else:
        assert json.loads(done.stdout) == {"bench": "cuda", "skipped": reason}


@pytest.mark.full
def test_every_line_of_ours_runs_on_the_stand_in(
    fake_cupy: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("bench_cuda", BENCH)
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None)   # no PyTorch
    monkeypatch.setattr(bench, "STEPS", 4)
    monkeypatch.setattr(sys, "argv", ["bench_cuda.py", "--seconds", "0"])
    bench.main()
    assert_figures(capsys.readouterr().out.splitlines())
