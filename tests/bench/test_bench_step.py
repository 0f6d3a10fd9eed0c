"""One second of the bench runs and its figures are there."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_logistic_step_gets_a_figure_per_instruction_set() -> None:
    bench = Path(__file__).with_name("bench_step.py")
    done = subprocess.run([sys.executable, str(bench), "--seconds", "1"], capture_output=True, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert figures and all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures)
    assert any("partial_fit" in figure["unit"] and figure["bar"] == 25 for figure in figures)
