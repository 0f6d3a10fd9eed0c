"""A registry's entry is a file: a copy under another name is found, described and trained with; no list is edited."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slots import decode_rows

import streamtrain
from streamtrain import _native
from streamtrain.cli import main
from streamtrain.cli.app import commands
from streamtrain.compute import losses, optimizers
from streamtrain.job import Job
from streamtrain.registry import Registry, registries
from tests.bench.bed import trained
from tests.mutants.tree import Tree

JOB = """
name = "copied"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
x = {{ standardize = true }}
{columns}
[model]
layers = [ {{ dense = 4, activation = "relu" }} ]
loss = "{loss}"
[optimizer]
name = "{optimizer}"
"""
LABELS = {"binary": "", "class": ", classes = 3", "number": ", standardize = true", "count": ""}
WRONG = {"binary": 7, "class": 7, "number": "seven", "count": -1}


@contextmanager
def copied(registry: Registry, name: str, folder: Path) -> Iterator[str]:
    """Copies an entry, in the registry's folder as far as anybody can tell; gives its new name."""
    package = import_module(registry.package)
    source = next(Path(each) / f"{name}.py" for each in package.__path__)
    folder = folder / f"{registry.package}.{name}"  # one of its own: what a folder holds is cached
    folder.mkdir()
    shutil.copy(source, folder / f"my_{name}.py")
    package.__path__.append(str(folder))
    try:
        yield f"my_{name}"
    finally:
        package.__path__.remove(str(folder))
        sys.modules.pop(f"{registry.package}.my_{name}", None)


def test_a_copy_is_an_entry(tmp_path: Path) -> None:
    """Checks a copy of each entry that is a file."""
    wrong = []
    for folder, registry in registries().items():
        for name in registry.names() if isinstance(registry, Registry) else ():
            before = registry.names()
            with copied(registry, name, tmp_path) as copy_name:
                found = registry.names() == sorted([*before, copy_name]) and registry.help(copy_name) == registry.help(
                    name
                )
                if not (found and hasattr(registry.get(copy_name), registry.word)):
                    wrong.append(f"{folder}: {name}")
    assert wrong == []


X = np.random.default_rng(1).normal(size=200)


@pytest.mark.parametrize("name", optimizers.names())
def test_a_copied_optimizer_trains_to_the_same_figures(name: str, tmp_path: Path) -> None:
    records = [json.dumps({"x": at, "c": str(at)[:3], "y": int(at > 0)}).encode() for at in X.tolist()]
    columns = 'c = { kind = "category", buckets = 8, embed = 2 }\ny = { role = "label" }'
    with copied(optimizers.REGISTRY, name, tmp_path) as copy_name:
        texts = [JOB.format(columns=columns, loss="binary_cross_entropy", optimizer=each) for each in (name, copy_name)]
        assert len({str(trained(Job.parse(text), records)) for text in texts}) == 1


@pytest.mark.parametrize("name", losses.names())
def test_a_copied_loss_has_the_label_dead_letters_and_figures_of_the_original(name: str, tmp_path: Path) -> None:
    """A loss says itself what its label is."""
    kind = losses.label_kind(name)
    labels = {"binary": X > 0, "class": np.digitize(X, [-0.5, 0.5]), "number": 3 * X + 40, "count": np.floor(abs(X))}
    rows = zip(X.tolist(), np.asarray(labels[kind], float).tolist(), strict=True)
    records = [json.dumps({"x": a, "y": b}).encode() for a, b in rows]
    columns = f'y = {{ role = "label"{LABELS[kind]} }}'
    with copied(losses.REGISTRY, name, tmp_path) as copy_name:
        assert losses.label_kind(copy_name) == kind
        texts = [JOB.format(columns=columns, loss=loss, optimizer="adam") for loss in (name, copy_name)]
        original, copy = map(Job.parse, texts)
        assert copy.schema.block_specs() == original.schema.block_specs() and copy.state_bytes == original.state_bytes
        _, tally = decode_rows("json", copy.schema, json.dumps({"x": 1, "y": WRONG[kind]}).encode())
        assert (tally.trained, tally.dead) == (0, 1)
        assert trained(copy, records) == trained(original, records)


def test_a_copied_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    with copied(registries()["commands"], "list", tmp_path):
        commands.cache_clear()
        for arguments in (["--help"], ["my-list", "optimizers"], ["list", "optimizers"]):
            with pytest.raises(SystemExit) as ended:
                main(arguments)
            assert ended.value.code == 0
            outputs.append(capsys.readouterr().out)
    commands.cache_clear()
    assert "my-list" in outputs[0] and outputs[1] == outputs[2]


ADDED = {"vertices": "scale", "optimizers": "adam", "losses": "huber"}
APPENDED = """

@REGISTRY.entry("mine", own_options("exponential"))
def my_exponential(options: Mapping[str, Any], step: int) -> float:
    return exponential(options, step)
"""
ADDED_ACTIVATION = """

@REGISTRY.entry("mine")
def mine(inputs: int, outputs: int) -> float:
    return glorot(inputs, outputs)
"""
TRAINED = """
import json, sys
import numpy as np
import streamtrain

def main():
    x = np.random.default_rng(1).normal(size=600)
    fitted = streamtrain.fit(json.loads(sys.argv[1]), {"x": x, "y": 2 * x})
    print(json.dumps({
        "where": streamtrain.__file__, "settings": fitted.manifest.job_settings, "payload": fitted.payload.hex(),
        "figures": [fitted.manifest.metrics["total"], *(array.tolist() for array in fitted.parameters.values())],
    }))

if __name__ == "__main__":
    main()
"""
SMALL = {"columns": {"x": {}, "y": {"role": "label"}}, "train": {"batch_rows": 32}}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Returns the interpreter of an environment with a copy of the package instead of the installed one.

    The environment shares the dependencies.
    """
    venv.create(tmp_path / "venv", symlinks=True)
    source = Path(streamtrain.__file__).parent
    shutil.copytree(source, tmp_path / "package" / "streamtrain", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(_native.__file__, tmp_path / "package" / "streamtrain")
    site = next((tmp_path / "venv" / "lib").glob("python*")) / "site-packages"
    (site / "copy.pth").write_text(f"{tmp_path / 'package'}\n{sysconfig.get_path('purelib')}\n")
    return tmp_path / "venv" / "bin" / Path(sys.executable).name


def contents(package: Path) -> dict[str, bytes]:
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(package)): path.read_bytes() for path in files}


def added_to(package: Path, before: dict[str, bytes]) -> list[str]:
    """The files there are since then; none of those before may have changed, but for what is built."""
    after = contents(package)
    assert [name for name in before if after.get(name) != before[name] and not name.endswith(".so")] == []
    return sorted(after.keys() - before.keys())


def trained_by(python: Path, folder: Path, job: dict[str, Any]) -> Any:
    (folder / "trained.py").write_text(TRAINED)
    command = [python, "trained.py", json.dumps(SMALL | job)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_three_files_and_a_function_are_added_and_nothing_is_edited(python: Path, tmp_path: Path) -> None:
    """A vertex, an optimizer, a loss and a schedule, in a copy of the package, which trains with them."""
    package = tmp_path / "package" / "streamtrain"
    with (package / "compute" / "schedules.py").open("a") as schedules:
        schedules.write(APPENDED)
    before = contents(package)
    for folder, name in ADDED.items():
        shutil.copy(package / "compute" / folder / f"{name}.py", package / "compute" / folder / f"my_{name}.py")
    found = []
    for mine in ("", "my_"):
        graph = {"a": {"dense": 4, "activation": "tanh", "of": "input"}, "b": {f"{mine}scale": ["a"], "by": 0.5}}
        schedule = {"name": f"{mine}exponential", "steps": 5}
        model, optimizer = {"graph": graph, "loss": f"{mine}huber"}, {"name": f"{mine}adam", "schedule": schedule}
        found.append(trained_by(python, tmp_path, {"model": model, "optimizer": optimizer}))
    assert [each["where"] for each in found] == [str(package / "__init__.py")] * 2
    settings = found[1]["settings"]
    names = [settings["model"]["loss"], settings["optimizer"], settings["optimizer"]["schedule"]]
    assert [each["name"] for each in names] == ["my_huber", "my_adam", "my_exponential"]
    assert found[0]["figures"] == found[1]["figures"]
    assert added_to(package, before) == sorted(f"compute/{folder}/my_{name}.py" for folder, name in ADDED.items())


@pytest.mark.mutants  # builds all of the native module
@pytest.mark.timeout(3600)
def test_a_header_and_a_function_are_an_activation(tmp_path: Path) -> None:
    tree = Tree(tmp_path, bootstrap="")
    kernel, entries = tree.root / "native" / "kernels" / "softsign.h", tree.root / "compute" / "activations.py"
    with entries.open("a") as activations:
        activations.write(ADDED_ACTIVATION)
    before = contents(tree.root)
    kernel.with_stem("mine").write_text(kernel.read_text().replace("softsign", "mine"))
    tree._build_extension()
    models = [
        {"layers": [{"dense": 4, "activation": name}], "loss": "mean_squared_error"} for name in ("softsign", "mine")
    ]
    usual, mine = (trained_by(tree.python, tmp_path, {"model": model})["payload"] for model in models)
    assert usual == mine != ""
    added = [name for name in added_to(tree.root, before) if name.startswith(("compute", "native"))]
    assert added == ["native/kernels/mine.h"]
