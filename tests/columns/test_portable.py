"""A file of `snapshots get` is enough to predict with, in NumPy and without our code; snapshots that predict, several
at once, over parameters that they may have in common."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looped import over
from numpy_predict import Predictor
from publisher import example_manifest
from small_model import FLIGHTS, SmallModel

from streamtrain.columns.portable import safetensors_file
from streamtrain.columns.served import Served
from streamtrain.compute import snapshot
from streamtrain.compute.model import Model, aligned
from streamtrain.errors import SnapshotError
from streamtrain.topics.chunks import Stored

ROWS: list[dict[str, Any]] = [
    # what is left out is missing
    {"dep_delay": 3.5, "distance": 700, "hour": 2, "carrier": "UA", "origin": "JFK"},
    {"distance": -7, "hour": 23, "carrier": "Vueling é 日本", "origin": "LGA", "tags": ["a", "b", 7, "a", "c"]},
    {"dep_delay": 1e4, "distance": 1, "hour": 0, "carrier": 1007, "origin": True, "stops": [], "place": [1.5, -2, 1e4]},
    {"dep_delay": -1, "distance": 6, "hour": 5, "carrier": "B6", "stops": ["x", True, "x"], "more": [2, 3.5],
     "wide": {"a": 2, "7": -1}, "said": "Late again: fog, FOG & more fog!", "spelt": "Zürich"},
    {"dep_delay": 0, "distance": 5, "hour": 11, "carrier": -3, "origin": "abcdefg",
     "wide": [[1, 2], [3, 0.5], [1, 1], [4, 9]], "deep": [["x", 1.5], [49, -3]]},
]  # fmt: skip
CLASSES = {**FLIGHTS, "late": {"role": "label", "classes": ["early", "on time", "späť"]}}
DELAY = {**FLIGHTS, "late": {"role": "label", "standardize": True}}
LISTS = {
    **FLIGHTS,
    "tags": {"kind": "category", "list": True, "buckets": 9, "embed": 3, "most": 4, "cut": True, "missing": ""},
    "stops": {"kind": "category", "list": True, "buckets": 5, "pool": "sum", "missing": "none"},
    "place": {"kind": "vector", "size": 3, "standardize": True, "missing": "mean"},
    "more": {"kind": "vector", "size": 2, "missing": 1},
    "marks": {"kind": "category", "list": True, "buckets": 5, "pool": "max", "missing": "none"},
    "wide": {"kind": "sparse", "buckets": 50, "most": 3, "cut": True, "missing": 0},
    "deep": {"kind": "sparse", "buckets": 50, "embed": 2, "missing": 0},
    "best": {"kind": "sparse", "buckets": 50, "embed": 2, "missing": 0, "pool": "max"},
    "said": {"kind": "text", "buckets": 90, "embed": 2, "ngrams": [1, 2], "missing": "Nothing at all", "pool": "sum"},
    "spelt": {
        "kind": "text",
        "buckets": 90,
        "by": "char",
        "ngrams": 3,
        "lower_case": False,
        "most": 4,
        "cut": True,
        "missing": "",
    },
}
ALONE = {
    "wide": {"kind": "sparse", "buckets": 50, "most": 3, "cut": True, "missing": 0},
    "late": {"role": "label", "classes": ["early", "on time", "late"]},
}
MEAN = {**FLIGHTS, "dep_delay": {"standardize": True, "missing": "mean"}}
MODELS = {
    "mean": (MEAN, "binary_cross_entropy", ({"dense": 8, "activation": "relu"},)),
    "binary": (FLIGHTS, "binary_cross_entropy", ({"dense": 8, "activation": "relu"},)),
    "linear": (FLIGHTS, "binary_cross_entropy", ()),
    "classes": (CLASSES, "softmax_cross_entropy", ({"dense": 8, "activation": "mish"}, {"dense": 5})),
    "number": (DELAY, "mean_squared_error", ({"dense": 4, "activation": "tanh"},)),
    "lists": (LISTS, "binary_cross_entropy", ({"dense": 8, "activation": "relu"},)),
    "wide alone": (ALONE, "softmax_cross_entropy", ()),
    "norms": (
        FLIGHTS,
        "binary_cross_entropy",
        (
            {"dense": 6},
            {"layer_norm": 1e-5, "activation": "relu"},
            {"dropout": 0.5},
            {"dense": 5},
            {"rms_norm": 1e-3},
            {"batch_norm": 1e-2, "activation": "tanh"},
        ),
    ),
    "cross": (FLIGHTS, "binary_cross_entropy", ({"cross": 2}, {"dense": 5})),
    "deep": (FLIGHTS, "mean_squared_error", tuple({"dense": 6, "activation": "sigmoid"} for _ in range(3))),
}


LAX = {"predict": {"accept_empty": True}}  # some rows name none of a small model's columns


def build_model(columns: Any, loss: str, layers: Any) -> tuple[SmallModel, Stored]:
    small = SmallModel.make(columns, loss)
    small.spec["layers"] = list(layers)
    manifest = example_manifest(7, model_spec=small.spec, schema=small.schema.to_dict(), job_settings=LAX)
    model, state = Model(small.spec), small.state(7)
    if "standardize.numbers" in (views := model.views(state)):
        views["standardize.numbers"][0, 2] = 1e-12  # a deviation that a float32 beside the mean would lose
    return small, Stored(manifest, b"d" * 32, 9, snapshot.model_payload(model.layout, state), None)


def answers(stored: Stored) -> list[dict[str, Any]]:
    scorer = Served.of(stored.manifest, stored.digest, stored.model).request_scorer("json", rows=256)
    bodies = scorer.score("asked", [json.dumps(row).encode() for row in ROWS])
    assert all(errors == 0 for *_, errors in bodies)
    return [json.loads(body) for body, *_ in bodies]


@over(("columns", "loss", "layers"), MODELS.values(), ids=list(MODELS))
def test_numpy_and_the_file_alone_predict_the_same(columns: Any, loss: str, layers: Any, tmp_path: Path) -> None:
    _, stored = build_model(columns, loss, layers)
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file(stored.manifest, stored.digest, stored.model))
    theirs = Predictor(path)
    for row, ours in zip(ROWS, answers(stored), strict=True):
        outputs = theirs.predict(row)
        if theirs.classes:
            expected = dict(zip(theirs.classes, outputs, strict=True))
            assert ours["probabilities"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
            assert ours["prediction"] == theirs.classes[int(outputs.argmax())]
        else:
            assert ours["prediction"] == pytest.approx(float(outputs[0]), rel=1e-4, abs=1e-6)


def test_the_metadata_names_the_snapshot_and_the_tensors_are_those_published(tmp_path: Path) -> None:
    _, stored = build_model(*MODELS["classes"])
    file = safetensors_file(stored.manifest, stored.digest, stored.model)
    path = tmp_path / "model.safetensors"
    path.write_bytes(file)
    metadata = Predictor(path).metadata
    assert all(isinstance(text, str) for text in metadata.values())  # the format allows nothing else
    expected = {"job": "flights", "version": "7", "digest": (b"d" * 32).hex(), "loss": "softmax_cross_entropy"}
    assert {name: metadata[name] for name in expected} == expected
    assert json.loads(metadata["classes"]) == ["early", "on time", "späť"]
    ours, theirs = snapshot.decode(stored.model), snapshot.decode(file)
    assert ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_other_programs_read_the_file(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    _, stored = build_model(*MODELS["binary"])
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file(stored.manifest, stored.digest, stored.model))
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata()["job"] == "flights"
        assert set(file.keys()) == set(snapshot.decode(stored.model))


def test_a_manifest_that_says_nothing_of_its_model_makes_no_file() -> None:
    with pytest.raises(SnapshotError, match="expected the columns and model"):
        safetensors_file(example_manifest(), b"d" * 32, b"")


ROW = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}


def served(model: SmallModel, version: int) -> Served:
    manifest = example_manifest(version, model_spec=model.spec, schema=model.schema.to_dict())
    return Served.of(manifest, bytes([version]) * 32, model.payload(version))


def answered(scorer: Any) -> Any:
    [(body, *_)] = scorer.score("asked", [json.dumps(ROW).encode()])
    return json.loads(body)


def test_requests_and_python_rows_have_one_answer() -> None:
    for model in (SmallModel.make(), SmallModel.make(loss="mean_squared_error")):
        one = served(model, 3)
        assert one.row_scorer(1, free_from=1).score_rows(ROW) == (answered(one.request_scorer("json", rows=4)), [])


def test_several_are_loaded_at_once() -> None:
    model, wider = SmallModel.make(), SmallModel.make(layers=(9,))
    scorers = {each.version: each.request_scorer("json", rows=4) for each in
               (served(model, 1), served(model, 2), served(wider, 3))}  # fmt: skip
    first = {version: answered(scorer) for version, scorer in scorers.items()}
    assert len({answer["prediction"] for answer in first.values()}) == 3
    for version in (2, 3, 1, 2):
        assert answered(scorers[version]) == first[version] and scorers[version].version == version


def test_parameters_belong_to_all_who_refer_to_them() -> None:
    model = SmallModel.make()
    first = served(model, 1)
    parameters = aligned(first.shape.model.state_bytes)
    parameters[:] = model.state(1)
    gone = weakref.ref(parameters)
    two = [Served(first.manifest, bytes(32), first.shape, parameters) for _ in range(2)]
    scorers = [two[0].request_scorer("json", rows=4), two[1].row_scorer(1, free_from=1)]
    del parameters, two
    gc.collect()
    expected = answered(first.request_scorer("json", rows=4))
    assert answered(scorers[0]) == expected and scorers[1].score_rows(ROW) == (expected, [])
    while scorers:
        assert gone() is not None
        scorers.pop()
        gc.collect()
    assert gone() is None
