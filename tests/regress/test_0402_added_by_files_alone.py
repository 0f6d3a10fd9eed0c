"""A vertex, an optimizer, a schedule and a loss are added to a copy of the package by a file each, an op by two, and
train: no file that was there is another then.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import streamtrain
from streamtrain import _native
from tests.mutants.tree import Tree

ADDED = {"vertices": "scale", "optimizers": "adam", "schedules": "exponential", "losses": "huber"}
TRAINED = """
import json, sys
import numpy as np
import streamtrain

def main():
    mine = sys.argv[1]
    x = np.random.default_rng(1).normal(size=600)
    graph = {"a": {"dense": 4, "activation": "tanh", "of": "input"}, "b": {mine + "scale": ["a"], "by": 0.5}}
    job = {
        "columns": {"x": {}, "y": {"role": "label"}},
        "model": {"graph": graph, "loss": mine + "huber"},
        "optimizer": {"name": mine + "adam", "schedule": {"name": mine + "exponential", "steps": 5}},
        "train": {"batch_rows": 32},
    }
    fitted = streamtrain.fit(job, {"x": x, "y": 2 * x})
    told = fitted.manifest.job_settings
    names = [told["model"]["loss"]["name"], told["optimizer"]["name"], told["optimizer"]["schedule"]["name"]]
    print(json.dumps({
        "where": streamtrain.__file__, "names": names, "metrics": fitted.manifest.metrics["total"],
        "parameters": {name: array.tolist() for name, array in fitted.parameters.items()},
    }))

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Of an environment with a copy of the package in the place of the installed one; what it needs is shared."""
    venv.create(tmp_path / "venv", symlinks=True)
    source = Path(streamtrain.__file__).parent
    shutil.copytree(source, tmp_path / "package" / "streamtrain", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_native.__file__, tmp_path / "package" / "streamtrain")
    site = next((tmp_path / "venv" / "lib").glob("python*")) / "site-packages"
    (site / "copy.pth").write_text(f"{tmp_path / 'package'}\n{sysconfig.get_path('purelib')}\n")
    return tmp_path / "venv" / "bin" / Path(sys.executable).name


def digests(package: Path) -> dict[str, str]:
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(package)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def trained(python: Path, script: Path, mine: str) -> dict[str, object]:
    done = subprocess.run([python, script, mine], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_four_files_are_added_and_none_is_edited(python: Path, tmp_path: Path) -> None:
    package, script = tmp_path / "package" / "streamtrain", tmp_path / "trained.py"
    script.write_text(TRAINED)
    before = digests(package)
    for folder, name in ADDED.items():
        shutil.copy(package / "compute" / folder / f"{name}.py", package / "compute" / folder / f"my_{name}.py")
    usual, mine = trained(python, script, ""), trained(python, script, "my_")
    assert mine["where"] == usual["where"] == str(package / "__init__.py")
    assert mine["names"] == ["my_huber", "my_adam", "my_exponential"]
    assert (mine["metrics"], mine["parameters"]) == (usual["metrics"], usual["parameters"])
    after = digests(package)
    edited = [name for name in before if after.get(name) != before[name]]
    assert len(edited) == 0, edited
    added = sorted(f"compute/{folder}/my_{name}.py" for folder, name in ADDED.items())
    assert sorted(set(after) - set(before)) == added


OP_TRAINED = """
import sys
import numpy as np
import streamtrain

def main():
    x = np.random.default_rng(1).normal(size=600)
    job = {
        "columns": {"x": {}, "y": {"role": "label"}},
        "model": {"layers": [{"dense": 4, "activation": sys.argv[1]}], "loss": "mean_squared_error"},
        "train": {"batch_rows": 32},
    }
    print(streamtrain.fit(job, {"x": x, "y": 2 * x}).payload.hex())

if __name__ == "__main__":
    main()
"""


@pytest.mark.mutants   # builds all of the native module
@pytest.mark.timeout(3600)
def test_two_files_are_an_op_and_none_is_edited(tmp_path: Path) -> None:
    tree, script = Tree(tmp_path), tmp_path / "trained.py"
    script.write_text(OP_TRAINED)
    before = digests(tree.root)
    for path in (tree.root / "compute" / "ops" / "softsign.py", tree.root / "native" / "kernels" / "softsign.h"):
        path.with_stem("mine").write_text(path.read_text().replace("softsign", "mine"))
    tree.build()
    found = [
        subprocess.run([tree.python, script, name], cwd=tmp_path, capture_output=True, text=True, timeout=240)
        for name in ("softsign", "mine")
    ]
    assert [done.returncode for done in found] == [0, 0], found[-1].stderr[-4000:]
    assert found[0].stdout == found[1].stdout != ""
    after = digests(tree.root)
    assert [name for name in before if after.get(name) != before[name] and not name.endswith(".so")] == []
    assert {name for name in set(after) - set(before) if name.startswith(("compute", "native"))} == {
        "compute/ops/mine.py", "native/kernels/mine.h"
    }  # fmt: skip
