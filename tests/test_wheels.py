"""What cibuildwheel is told in pyproject.toml: the wheels it would make, and with what it tries them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ASKED = PROJECT["tool"]["cibuildwheel"]


@pytest.mark.full
def test_it_would_make_one_for_each_python_and_machine() -> None:
    pytest.importorskip("cibuildwheel", reason="not installed (extra test-full)")
    command = [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--print-build-identifiers", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    made = re.findall(r"^cp3(\d+)-manylinux_(\w+)$", done.stdout, re.MULTILINE)
    assert len(made) == len(done.stdout.split())
    assert {machine for _, machine in made} == {"x86_64", "aarch64"}
    for machine in ("x86_64", "aarch64"):
        minors = sorted(int(minor) for minor, its in made if its == machine)
        assert minors == list(range(minors[0], minors[-1] + 1)) and minors[-1] >= 14
        assert PROJECT["project"]["requires-python"] == f">=3.{minors[0]}"


def test_what_tries_them_is_there() -> None:
    assert set(ASKED["test-extras"]) <= set(PROJECT["project"]["optional-dependencies"])
    assert all((ROOT / name).exists() for name in ASKED["test-sources"])
    named = [word for line in ASKED["test-command"] for word in shlex.split(line) if word.startswith("tests/")]
    assert named and all((ROOT / name).exists() for name in named)
    wanted = {re.split(r"[<>=]", each)[0]: each for each in PROJECT["project"]["optional-dependencies"]["test"]}
    for each in ASKED["test-requires"]:
        assert wanted[re.split(r"[<>=]", each)[0]] == each  # the same range
