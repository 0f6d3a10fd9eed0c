"""A short run of the bench gives every figure."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def test_the_memory_gets_its_figures(kafka: Any) -> None:
    bench = Path(__file__).with_name("bench_memory.py")
    command = [sys.executable, str(bench), "--rows", "100000", "--bootstrap", kafka.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(figures) == 2
    assert all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures)
