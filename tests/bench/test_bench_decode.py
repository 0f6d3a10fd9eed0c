"""One second of the bench runs and every figure is there."""

import json
import subprocess
import sys
from pathlib import Path


def test_every_format_gets_its_figures() -> None:
    bench = Path(__file__).with_name("bench_decode.py")
    done = subprocess.run([sys.executable, str(bench), "--seconds", "1"], capture_output=True, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    first_words = [figure["bench"].replace(",", " ").split()[0] for figure in figures]
    assert first_words == ["json", "the", "json", "json", "msgpack", "msgpack", "packed", "packed", "packed", "one"]
    assert all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures)
