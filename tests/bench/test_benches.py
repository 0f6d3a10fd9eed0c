"""A short run of every bench of this folder gives its figures.

A bench may say SMOKE, the arguments of its short run, and FIGURES, how many lines it prints.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

FOLDER = Path(__file__).parent
BENCHES = sorted(FOLDER.glob("bench_*.py"))
ON_KAFKA = [bench for bench in BENCHES if "STREAMTRAIN_TEST_BOOTSTRAP" in bench.read_text()]
ALONE = [bench for bench in BENCHES if bench not in ON_KAFKA]


def constants(bench: Path) -> dict[str, Any]:
    """The plain values a bench gives to names in capitals, without running it."""
    found = {}
    for node in ast.parse(bench.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def check(bench: Path, **environment: str) -> None:
    told = constants(bench)
    done = subprocess.run(
        [sys.executable, str(bench), *told.get("SMOKE", ["--seconds", "1"])],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert figures
    if all("skipped" in figure for figure in figures):
        pytest.skip(figures[0]["skipped"])
    assert len(figures) == told.get("FIGURES", len(figures))
    assert all(figure["ours"] > 0 and figure["rival"] > 0 for figure in figures), figures


@pytest.mark.parametrize("bench", ALONE, ids=lambda bench: bench.stem)
def test_a_bench_gives_its_figures(bench: Path) -> None:
    check(bench)


@pytest.mark.full
@pytest.mark.parametrize("bench", ON_KAFKA, ids=lambda bench: bench.stem)
def test_a_bench_on_kafka_gives_its_figures(kafka: Any, bench: Path) -> None:
    check(bench, STREAMTRAIN_TEST_BOOTSTRAP=kafka.bootstrap)
