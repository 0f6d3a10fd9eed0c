"""The sources as the architecture tests see them: what git tracks (or would), parsed once."""

from __future__ import annotations

import ast
import gc
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE_FOLDERS = ("streamtrain/", "compute/", "topics/")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> list[str]:
    """Every file git tracks or does not ignore, relative to the checkout; symbolic links left out."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no git checkout here: {done.stderr.decode().strip()}")
    names = sorted(name for name in done.stdout.decode().split("\0") if name)
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


@pytest.fixture(scope="session")
def python_trees(tracked: list[str]) -> dict[str, ast.Module]:
    """Every Python file's syntax tree. No garbage is looked for among a million nodes: two thirds of the time."""
    gc.disable()
    try:
        return {name: ast.parse((ROOT / name).read_text()) for name in tracked if name.endswith(".py")}
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def package_trees(python_trees: dict[str, ast.Module]) -> dict[str, ast.Module]:
    """The syntax trees of what is installed, by the dotted name it is imported under."""
    return {dotted_name(name): tree for name, tree in python_trees.items() if name.startswith(PACKAGE_FOLDERS)}


def dotted_name(path: str) -> str:
    """`compute/ops/mish.py` is `streamtrain.compute.ops.mish`."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts if parts[0] == "streamtrain" else ["streamtrain", *parts])
