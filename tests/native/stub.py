"""`python -m tests.native.stub` writes streamtrain/_native.pyi from the built module and stub.nb."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nanobind.stubgen import StubGen, load_pattern_file

from streamtrain import _native
from tests.architecture.sources import ROOT

STUB = ROOT / "streamtrain" / "_native.pyi"
PATTERNS = Path(__file__).with_suffix(".nb")


def generate() -> str:
    """Returns the stub of the built module."""
    patterns = load_pattern_file(str(PATTERNS))
    generator = StubGen(_native, patterns=patterns)
    generator.put(_native)
    unused = [each.query.pattern for each in patterns if not each.matches]
    if unused:
        raise LookupError(f"{PATTERNS.name}: expected patterns of names in the module, got {unused}; delete them")
    return normalize(generator.get())


def normalize(stub: str) -> str:
    """Returns a stub as the ruff at hand sorts and formats it."""
    for command in ("check", "--fix-only", "--quiet"), ("format",):
        arguments = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
        stub = subprocess.run(arguments, input=stub, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return stub


if __name__ == "__main__":
    STUB.write_text(generate())
