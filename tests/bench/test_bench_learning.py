"""A short run of the bench gives a figure for every bar of its stream."""

import json
import subprocess
import sys
from pathlib import Path


def test_a_small_stream_gets_its_figures() -> None:
    bench = Path(__file__).with_name("bench_learning.py")
    command = [sys.executable, str(bench), "tiny", "--seeds", "1", "--rows", "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert figures[0]["bench"] == "learning tiny / constant" and figures[0]["rows"] == 200
    assert all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures)
