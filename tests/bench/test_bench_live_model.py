"""One second of the bench runs and gives its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_smoke() -> None:
    bench = Path(__file__).with_name("bench_live_model.py")
    told = subprocess.run([sys.executable, bench, "--seconds", "1"], capture_output=True, text=True, check=True).stdout
    figures = {figure["bench"]: figure for figure in map(json.loads, told.splitlines())}
    assert figures.keys() == {"live_model_one_dict_p50", "live_model_one_dict_p99"}
    assert figures["live_model_one_dict_p50"]["ours"] < figures["live_model_one_dict_p50"]["bar"]
