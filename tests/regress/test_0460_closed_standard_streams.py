"""A program that has closed its standard streams: the arena's descriptor is none of theirs, a child's are others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
os.close(0)
os.close(1)
import streamtrain
from tests.fitting.example import TABLES, columns
rows = streamtrain.fit(TABLES, columns(500)).manifest.rows_seen
sys.exit(0 if rows == 500 else 9)
"""


def test_it_trains() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
