"""An entry's file copied under another name is an entry: found, described and imported, and no list is edited."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamtrain.cli import main
from streamtrain.cli.app import commands
from streamtrain.compute import optimizers
from streamtrain.job import Job
from streamtrain.registry import Registry, registries
from tests.bench.learning_run import trained

ENTRIES = [(folder, name) for folder, registry in registries().items() for name in registry.names()]
JOB = """
name = "copied"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
x = {{ standardize = true }}
c = {{ kind = "category", buckets = 8, embed = 2 }}
y = {{ role = "label" }}
[model]
layers = [ {{ dense = 4, activation = "relu" }} ]
[optimizer]
name = "{optimizer}"
"""
Copy = Callable[[Registry, str], str]


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    """Copies an entry, in the registry's folder as far as anybody can tell; gives its new name."""
    undo: list[tuple[Any, str]] = []

    def copied(registry: Registry, name: str) -> str:
        package = import_module(registry.package)
        source = next(Path(folder) / f"{name}.py" for folder in package.__path__)
        shutil.copy(source, tmp_path / f"my_{name}.py")
        package.__path__.append(str(tmp_path))
        undo.append((package, f"{registry.package}.my_{name}"))
        return f"my_{name}"

    yield copied
    for package, module in undo:
        package.__path__.remove(str(tmp_path))
        sys.modules.pop(module, None)


@pytest.mark.parametrize(("folder", "name"), ENTRIES, ids="-".join)
def test_a_copy_is_an_entry(copy: Copy, folder: str, name: str) -> None:
    registry = registries()[folder]
    before = registry.names()
    made = copy(registry, name)
    assert registry.names() == sorted([*before, made]) and registry.help(made) == registry.help(name)
    assert hasattr(registry.get(made), registry.word)


@pytest.mark.parametrize("name", optimizers.names())
def test_a_copied_optimizer_trains_to_the_same_figures(copy: Copy, name: str) -> None:
    made = copy(optimizers.REGISTRY, name)
    x = np.random.default_rng(1).normal(size=200)
    records = [json.dumps({"x": at, "c": str(at)[:3], "y": int(at > 0)}).encode() for at in x.tolist()]
    found = [trained(Job.parse(JOB.format(optimizer=each)), records) for each in (name, made)]
    assert found[0] == found[1]


def test_a_copied_command_runs(copy: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    copy(registries()["commands"], "list")
    commands.cache_clear()
    said = []
    for arguments in (["--help"], ["my-list", "optimizers"], ["list", "optimizers"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        said.append(capsys.readouterr().out)
    commands.cache_clear()
    assert "my-list" in said[0] and said[1] == said[2]
