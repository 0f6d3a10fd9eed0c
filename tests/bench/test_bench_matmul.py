"""One second of the bench runs and every figure is there."""

import json
import subprocess
import sys
from pathlib import Path


def test_every_shape_and_kernel_gets_a_figure() -> None:
    bench = Path(__file__).with_name("bench_matmul.py")
    done = subprocess.run([sys.executable, str(bench), "--seconds", "1"], capture_output=True, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(figures) == 18
    assert all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures)
