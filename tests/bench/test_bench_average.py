"""One second of the bench runs and the figure is there."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_average_gets_its_figure() -> None:
    bench = Path(__file__).with_name("bench_average.py")
    done = subprocess.run([sys.executable, str(bench), "--seconds", "1"], capture_output=True, text=True, check=True)
    (figure,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert figure["ours"] > 0 and figure["rival"] > 0
