"""One second of the bench runs and every figure is there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def test_every_delivery_gets_a_figure(kafka: Any) -> None:
    bench = Path(__file__).with_name("bench_prediction.py")
    environment = {**os.environ, "STREAMTRAIN_TEST_BOOTSTRAP": kafka.bootstrap}
    command = [sys.executable, str(bench), "--seconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(figures) == 3
    assert all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures)
