"""The sources as the architecture tests see them: what git tracks, or would."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping

import pytest

from tests.architecture.sources import ROOT, Trees

pytest.register_assert_rewrite(
    *(f"tests.architecture.{name}" for name in ("imports", "lists", "shipped", "size"))
)
PACKAGE_FOLDERS = ("streamtrain/", "compute/", "topics/")


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
def python_trees(tracked: list[str]) -> Mapping[str, ast.Module]:
    """Every Python file's syntax tree."""
    return Trees({name: name for name in tracked if name.endswith(".py")})


@pytest.fixture(scope="session")
def package_trees(tracked: list[str]) -> Mapping[str, ast.Module]:
    """The syntax trees of what is installed, by the dotted name it is imported under."""
    names = [name for name in tracked if name.endswith(".py") and name.startswith(PACKAGE_FOLDERS)]
    return Trees({dotted_name(name): name for name in names})


def dotted_name(path: str) -> str:
    """`compute/ops/mish.py` is `streamtrain.compute.ops.mish`."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts if parts[0] == "streamtrain" else ["streamtrain", *parts])
