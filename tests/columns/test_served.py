"""Snapshots that predict: several at once, over parameters that they may have in common."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

from publisher import example_manifest
from small_model import SmallModel

from streamtrain.columns.served import Served
from streamtrain.compute.model import aligned

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


def test_several_are_held_at_once() -> None:
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
