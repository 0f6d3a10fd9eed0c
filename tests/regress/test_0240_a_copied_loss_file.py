"""A loss file that is copied under another name works without an edit elsewhere: it says itself what its label is."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from slots import decode_rows

from streamtrain.compute import losses
from streamtrain.job import Job
from tests.bench.learning_run import trained

JOB = """
name = "copied"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
x = {{ standardize = true }}
y = {{ role = "label"{label} }}
[model]
loss = "{loss}"
"""
LABELS = {"binary": "", "class": ", classes = 3", "number": ", standardize = true", "count": ""}
WRONG = {"binary": 7, "class": 7, "number": "seven", "count": -1}


@pytest.fixture(params=losses.names())
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The loss that was copied, as `my_loss`, in the registry's folder as far as anybody can tell."""
    shutil.copy(Path(losses.__path__[0]) / f"{request.param}.py", tmp_path / "my_loss.py")
    losses.__path__.append(str(tmp_path))
    yield str(request.param)
    losses.__path__.remove(str(tmp_path))
    sys.modules.pop("streamtrain.compute.losses.my_loss", None)


def test_its_label_its_dead_letters_and_its_figures_are_those_of_the_original(copied: str) -> None:
    kind = losses.label_kind(copied)
    original, copy = (Job.parse(JOB.format(loss=loss, label=LABELS[kind])) for loss in (copied, "my_loss"))
    assert copy.schema.block_specs() == original.schema.block_specs() and copy.state_bytes == original.state_bytes
    _, tally = decode_rows("json", copy.schema, json.dumps({"x": 1, "y": WRONG[kind]}).encode())
    assert (tally.trained, tally.dead) == (0, 1)
    random = np.random.default_rng(1)
    x = random.normal(size=200)
    labels = {"binary": x > 0, "class": np.digitize(x, [-0.5, 0.5]), "number": 3 * x + 40,
              "count": np.floor(abs(x))}[kind]
    rows = zip(x.tolist(), np.asarray(labels, float).tolist(), strict=True)
    records = [json.dumps({"x": a, "y": b}).encode() for a, b in rows]
    assert trained(copy, records) == trained(original, records)
