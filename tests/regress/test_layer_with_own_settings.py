"""A layer was taken for one size and some words: settings of any type, from one file, reach check, engine and size."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from streamtrain.cli.commands.list import settings_of
from streamtrain.compute import layers, snapshot
from streamtrain.compute.model import Model
from streamtrain.compute.options import Word
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes, settings_table
from streamtrain.job.mistakes import show_value
from tests.bench.bed import trained

LAYER = '''
"""Dense layers one after the other, each narrower than the one before."""

from streamtrain.compute.layers import dense
from streamtrain.compute.options import Number, Several, Whole, Word

HELP = "narrowing dense layers"
OPTIONS = {
    "depth": Whole(least=1, most=8, help="layers"),
    "narrowing": Number(above=0, most=1, default=0.5, help="width of a layer, by that before"),
    "shape": Word(of=("plain", "bent"), default="plain", help="what lies between them"),
    "widths": Several(of=Whole(least=1, most=64, help=""), least=0, most=8, default=(), help="in place of narrowing"),
}
EXAMPLES = ({"depth": 2}, {"depth": 3, "narrowing": 0.9, "shape": "bent"}, {"depth": 2, "widths": [3, 5]})


def shape(inputs, depth, narrowing, shape, widths):
    (x,) = inputs
    for at in range(depth):
        x = x._replace(columns=widths[at] if widths else max(1, int(x.columns * narrowing)))
    return x


def build(builder, name, x, depth, narrowing, shape, widths):
    for at in range(depth):
        size = widths[at] if widths else max(1, int(x.ref.shape[1] * narrowing))
        x = dense.build(builder, f"{name}.{at}", x, size, "tanh" if shape == "bent" else "none")
    return x
'''
JOB = """name = "x"
[kafka]
bootstrap.servers = "x:1"
[columns]
"x{1..8}" = {}
y = { role = "label" }
[model]
layers = [ LAYERS ]
"""


@pytest.fixture(autouse=True)
def funnel(tmp_path: Path) -> Iterator[None]:
    """The layer in a file of the registry's folder, as far as anybody can tell."""
    (tmp_path / "funnel.py").write_text(LAYER)
    layers.__path__.append(str(tmp_path))
    yield
    layers.__path__.remove(str(tmp_path))
    sys.modules.pop("streamtrain.compute.layers.funnel", None)


def job(given: str) -> Job:
    return Job.parse(JOB.replace("LAYERS", given), name="x.toml")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{ funnel = 9 }", "layers[0].funnel: expected a whole number from 1 to 8, got 9"),
        ("{ funnel = 2, narrowing = 0 }", "layers[0].narrowing: expected a number above 0 to 1, got 0"),
        ("{ funnel = 2, shape = 'bend' }", 'shape: expected one of plain, bent, got "bend"; did you mean bent?'),
        ("{ funnel = 2, narowing = 1 }", "unknown option of funnel; allowed: funnel, narrowing, shape, widths; did"),
        ("{ funnel = 2, widths = [0] }", "an array of 0 to 8, each a whole number from 1 to 64, got [0]"),
        ("{ dense = 2, funnel = 2 }", 'layers[0]: expected one layer to a table, got ["dense", "funnel"]'),
        ("{ dense = 2 }, { funel = 2 }", "did you mean funnel?"),
    ],
)
def test_a_mistake_has_its_line_here_and_its_place_in_a_manifests_spec(given: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        job(given)
    assert len(caught.value.mistakes) == 1
    assert str(caught.value.mistakes[0]).startswith("x.toml:8: model.layers[") and message in str(caught.value)
    spec = {**job("").model_spec(), **tomllib.loads(f"layers = [ {given} ]")}
    with pytest.raises(UserMistake, match=r"^model.layers\[") as refused:
        Model(spec)
    assert message.partition(", got")[0].partition("did")[0].rstrip("; ") in str(refused.value)


def test_its_examples_train_and_come_back_from_a_snapshot() -> None:
    tried = layers.examples("funnel")
    assert {"funnel": 2, "shape": "bent"} in tried and {"funnel": 2, "widths": [3, 5]} in tried
    random = np.random.default_rng(1)
    rows = [{f"x{at}": float(cell) for at, cell in enumerate(row, 1)} for row in random.normal(size=(200, 8))]
    records = [json.dumps({**row, "y": int(row["x1"] > 0)}).encode() for row in rows]
    funnel = Model(job("{ funnel = 3 }").model_spec())  # 8 inputs to 4, 2, 1, and the output
    floats = sum(block.count for block in funnel.blocks if block.group == "parameters")
    assert floats == 8 * 4 + 4 + 4 * 2 + 2 + 2 * 1 + 1 + 1 + 1
    for example in tried:
        layer_job = job(show_value(example))
        assert 0 < abs(trained(layer_job, records)["log_loss"] - np.log(2)) < 0.1
        model = Model({**layer_job.model_spec(), "layers": json.loads(json.dumps([example]))})
        assert layer_job.state_bytes == model.state_bytes
        state = model.initial_state(3)
        again, payload = np.zeros_like(state), snapshot.model_payload(model, state)
        snapshot.load(model, again, payload)
        assert snapshot.model_payload(model, again) == payload


def test_it_is_listed_with_its_settings() -> None:
    settings = settings_of(layers.REGISTRY, "funnel")["settings"]
    assert settings["narrowing"] == {
        "takes": "a number above 0 to 1", "default": 0.5, "help": "width of a layer, by that before",
    }  # fmt: skip
    settings_table.cache_clear()
    try:
        assert "model.layers.<funnel>.shape" in [setting.path for setting in settings_table()]
    finally:
        settings_table.cache_clear()


def test_what_has_no_default_is_missed_at_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Word(of=("plain", "bent"), help="")
    monkeypatch.setitem(layers.get("funnel").OPTIONS, "shape", shape)
    with pytest.raises(JobMistakes) as caught:
        job("{ funnel = 2 }")
    (mistake,) = caught.value.mistakes
    assert str(mistake) == "x.toml:8: model.layers[0].shape: missing, expected one of plain, bent"
    wide = '"c{1..2}" = { kind = "category", buckets = 2, embed = 40000 }'  # which only the engine finds
    with pytest.raises(JobMistakes, match=r"x.toml:7: model.input: expected 1 to \d+ columns"):
        Job.parse(JOB.replace("LAYERS", "").replace('"x{1..8}" = {}', wide), name="x.toml")
