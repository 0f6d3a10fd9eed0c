"""A job's network: a name is imported for a job file, and for nothing else."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from streamtrain.job import Job
from streamtrain.job.mistakes import JobMistakes

TEXT = """name = "x"
[kafka]
bootstrap.servers = "b"
[columns]
a = {}
y = { role = "label" }
[model]
torch = "NAME:Net"
"""


def marked(folder: Path, name: str) -> str:
    """A module that leaves a trace when it is imported."""
    (folder / f"{name}.py").write_text(f"import sys\nsys.{name} = True\nNet = 3\n")
    return TEXT.replace("NAME", name)


def test_a_manifest_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    marked(tmp_path, "of_a_manifest")
    told: dict[str, Any] = Job.parse(TEXT.replace('torch = "NAME:Net"\n', "")).effective()
    told["model"]["torch"] = "of_a_manifest:Net"
    with pytest.raises(JobMistakes, match=r"model\.torch: expected what the module is, as a table"):
        Job.from_effective(told)
    assert not hasattr(sys, "of_a_manifest")


def test_a_job_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    (tmp_path / "job.toml").write_text(marked(tmp_path, "beside_a_job"))
    with pytest.raises(JobMistakes, match=r"job.toml:8: model.torch: .*expected a class or a function, got int"):
        Job.load(tmp_path / "job.toml")
    assert hasattr(sys, "beside_a_job")


LAYERS, GRAPH = "layers = [ { dense = 3 } ]", 'graph.a = { dense = 3, of = "input" }'
TORCH = 'torch = "any:Net"'


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (f"{TORCH}\n{LAYERS}", ":9: model.layers: expected none beside a PyTorch module, which is the whole network"),
        (f"{TORCH}\n{GRAPH}", "model.graph: expected none beside a PyTorch module"),
        (f"{LAYERS}\n{GRAPH}", "model.graph: expected none beside layers, which are the whole network"),
    ],
)
def test_two_networks_are_one_too_many(model: str, told: str) -> None:
    with pytest.raises(JobMistakes, match=re.escape(told)) as error:
        Job.parse(TEXT.replace('torch = "NAME:Net"', model))
    assert len(error.value.mistakes) == 1
    with pytest.raises(JobMistakes, match=r"model\.layers: expected none beside a PyTorch module"):
        Job.parse(TEXT.replace('torch = "NAME:Net"', LAYERS), module=lambda: None)  # as is a module of a program
