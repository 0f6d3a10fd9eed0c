"""Rows in every form a program holds them, against a predictor's answers; bad rows named."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from at_once import run_at_once
from publisher import example_manifest
from small_model import SmallModel

from streamtrain.clients.scorer import BATCH_ROWS, Scorer
from streamtrain.columns.served import Served
from streamtrain.compute.model import Model
from streamtrain.errors import RecordError, SnapshotError, StreamtrainError, UserMistake

ROW = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}


def scorer_of(model: SmallModel, seed: int = 3) -> Scorer:
    manifest = example_manifest(seed, model_spec=model.spec, schema=model.schema.to_dict())
    return Scorer(Served.of(manifest, b"d" * 32, model.payload(seed)))


def rows(count: int) -> list[dict[str, Any]]:
    return [{**ROW, "dep_delay": number / 9, "carrier": f"C{number % 40}"} for number in range(count)]


def test_an_answer_is_that_of_a_request() -> None:
    """Which tests/columns/test_portable.py compares with NumPy: of probabilities, classes and numbers."""
    models = [SmallModel.make(layers=layers) for layers in ((), (8,), (16, 8))]
    classes = {"x": {}, "way": {"role": "label", "classes": ["walk", "sit", "lie"]}}
    models.append(SmallModel.make(classes, "softmax_cross_entropy"))
    models.append(SmallModel.make({"x": {}, "y": {"role": "label", "standardize": True}}, "mean_squared_error"))
    given = [{**row, "x": at / 9 - 2} for at, row in enumerate(rows(50))]
    for scorer in map(scorer_of, models):
        requests = [json.dumps(row).encode() for row in given]
        for row, (body, *_) in zip(
            given, scorer.served.request_scorer("json", 256).score("asked", requests), strict=True
        ):
            answer, expected = scorer.predict(row), json.loads(body)
            if "probabilities" in expected:
                assert answer["prediction"] == expected["prediction"]
                answer, expected = answer["probabilities"], expected["probabilities"]
            assert answer == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("count", [0, 1, 2, BATCH_ROWS, BATCH_ROWS + 1, 3 * BATCH_ROWS])
def test_many_rows_in_any_form_give_what_each_gives_alone(count: int) -> None:
    scorer, given = scorer_of(SmallModel.make()), rows(count)
    alone = [scorer.predict(row) for row in given]
    columns = {name: [row[name] for row in given] for name in ROW}
    forms = [given, tuple(given)]
    forms += [columns, {name: np.array(cells) for name, cells in columns.items()}, pd.DataFrame(given)] if count else []
    for form in forms:
        answers = scorer.predict(form)
        assert [answer["prediction"] for answer in answers] == pytest.approx([a["prediction"] for a in alone], abs=1e-6)


def test_label_and_unknown_fields_may_be_there_and_missing_has_its_value() -> None:
    scorer = scorer_of(SmallModel.make())
    plain = scorer.predict(ROW)
    assert scorer.predict({**ROW, "late": 1, "tail": "N1"}) == plain == scorer.predict({**ROW, "late": None})
    absent = {name: value for name, value in ROW.items() if name not in ("dep_delay", "origin")}
    assert scorer.predict(absent) == scorer.predict({**absent, "dep_delay": 0, "origin": ""})
    frame = pd.DataFrame([{**ROW, "dep_delay": float("nan")}])
    assert scorer.predict(frame) == [scorer.predict({**ROW, "dep_delay": 0})]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({**ROW, "distance": "far"}, r"row at \$\.distance: expected number, got \"far\""),
        ({}, r"row at \$\.distance: expected number, got nothing"),
        ({**ROW, "hour": float("nan")}, r"row at \$\.hour"),
        ([ROW] * 300 + [{**ROW, "hour": []}], r"row 300 at \$\.hour"),
        ({"distance": [1, 2], "hour": [3, None], "carrier": ["a", "b"]}, r"row 1 at \$\.hour"),
        ({"distance": np.array([1, np.inf]), "hour": [3, 4], "carrier": ["a", "b"]}, r"row 1 at \$\.distance"),
        ({**ROW, "hour": datetime(2026, 1, 2)}, r"row at \$\.hour: expected number, got datetime\.datetime"),
        ({**ROW, "hour": np.datetime64("2026-01-02")}, r"row at \$\.hour: expected number, got numpy\.datetime64"),
        (pd.DataFrame([{**ROW, "hour": pd.Timestamp("2026-01-02")}]), r"row 0 at \$\.hour: expected number, got"),
        ({**ROW, "hour": b"7"}, r"row at \$\.hour: expected number, got bytes"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(given: Any, text: str) -> None:
    with pytest.raises(RecordError, match=text):
        scorer_of(SmallModel.make()).predict(given)


def test_a_prediction_that_is_not_finite_is_an_error() -> None:
    model = SmallModel.make({f"x{at}": {} for at in range(30)} | {"y": {"role": "label"}}, "mean_squared_error", ())
    weight = Model(model.spec).views(model.state(3))["output.weight"][:, 0]
    row = {f"x{at}": 3e38 * float(np.sign(value)) for at, value in enumerate(weight)}
    calm = dict.fromkeys(row, 1.0)
    with pytest.raises(RecordError, match=r"^row at \$: expected a finite prediction"):
        scorer_of(model).predict(row)
    with pytest.raises(RecordError, match=r"^row 2 at \$: expected a finite prediction"):
        scorer_of(model).predict([calm, calm, row])


@pytest.mark.parametrize("given", [7, "text", None, [1], [ROW, 1], {"distance": [1], "hour": [1, 2]}])
def test_what_is_no_rows_is_a_mistake(given: Any) -> None:
    with pytest.raises(UserMistake, match="rows"):
        scorer_of(SmallModel.make()).predict(given)


def test_snapshots_of_one_shape_share_it_and_none_is_put_into_another() -> None:
    model = SmallModel.make()
    before = scorer_of(model).served
    again = Served.of(before.manifest, b"e" * 32, model.payload(5), before)
    assert again.shape is before.shape
    wider = SmallModel.make(layers=(9,))
    manifest = example_manifest(4, model_spec=wider.spec, schema=wider.schema.to_dict())
    other = Served.of(manifest, b"d" * 32, wider.payload(4), before)
    assert other.shape is not before.shape and Scorer(other).predict(ROW) == scorer_of(wider, 4).predict(ROW)
    for payload, same in ((model.payload(4), manifest), (wider.payload(4), replace(manifest, model_spec=model.spec))):
        with pytest.raises(SnapshotError):
            Served.of(same, b"d" * 32, payload, before)


@pytest.mark.parametrize("changes", [{"model_spec": {}}, {"schema": {}}, {"model_spec": {"loss": "magic"}}])
def test_a_manifest_this_program_cannot_build_is_an_error(changes: dict[str, Any]) -> None:
    model = SmallModel.make()
    with pytest.raises(StreamtrainError):
        manifest = example_manifest(1, **{"model_spec": model.spec, "schema": model.schema.to_dict(), **changes})
        Served.of(manifest, b"d" * 32, model.payload(1))


def test_errors_may_be_returned_in_their_rows_places() -> None:
    scorer, bad = scorer_of(SmallModel.make()), {**ROW, "distance": "far"}
    good = scorer.predict([ROW])[0]
    many = [ROW] * 299 + [bad] + [ROW] * 3 + [{}]
    forms = [many, {name: [row.get(name) for row in many] for name in ROW}, iter(many)]
    for form in forms:
        answers = scorer.predict(form, errors="return")
        errors = {at: str(answer) for at, answer in enumerate(answers) if isinstance(answer, RecordError)}
        assert errors.keys() == {299, 303}
        assert errors[299] == 'row 299 at $.distance: expected number, got "far"'
        assert errors[303].startswith("row 303 at $.distance: expected number, got nothing")
        assert all(answer == good for at, answer in enumerate(answers) if at not in errors)
    alone = scorer.predict(bad, errors="return")
    assert isinstance(alone, RecordError) and str(alone) == 'row at $.distance: expected number, got "far"'
    assert scorer.predict(ROW, errors="return") == scorer.predict(ROW)
    for given in (ROW, [ROW]):
        with pytest.raises(UserMistake, match='errors="raise" or errors="return", got \'ignore\''):
            scorer.predict(given, errors="ignore")  # type: ignore[arg-type]


def test_values_of_other_types_are_taken_where_the_column_can() -> None:
    scorer = scorer_of(SmallModel.make())
    plain = scorer.predict(ROW)
    as_others = {"dep_delay": Decimal("3.5"), "distance": np.int16(7), "hour": np.float32(2), "carrier": b"UA"}
    assert scorer.predict({**ROW, **as_others}) == plain
    assert scorer.predict({**ROW, "dep_delay": float("nan")}) == scorer.predict({**ROW, "dep_delay": pd.NA})
    assert scorer.predict({**ROW, "dep_delay": None}) == scorer.predict({**ROW, "dep_delay": pd.NaT})
    ignored = {"late": object(), "tags": ["a", "b"], "at": datetime(2026, 1, 2), "x": float("inf")}
    assert scorer.predict({**ignored, **ROW}) == plain
    columns = {name: [value] for name, value in ROW.items()}
    assert scorer.predict({"tags": "none", **columns, "more": [1, 2, 3]}) == scorer.predict([ROW])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f8", ">i4", "?"])
def test_arrays_of_every_type_and_stride(dtype: str) -> None:
    scorer = scorer_of(SmallModel.make())
    hours = np.array([0, 1, 1, 0, 1], dtype)
    expected = [scorer.predict([{**ROW, "hour": int(hour)}])[0] for hour in hours]
    others = {name: [value] * 5 for name, value in ROW.items() if name != "hour"}
    assert scorer.predict({**others, "hour": hours}) == expected
    assert scorer.predict({**others, "hour": np.repeat(hours, 3)[::3]}) == expected
    assert scorer.predict({**others, "hour": hours[::-1]}) == expected[::-1]


def test_arrow_tables_and_their_nulls() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    scorer = scorer_of(SmallModel.make())
    given = [{**ROW, "dep_delay": None}, {**ROW, "carrier": "AA"}]
    assert scorer.predict(arrow.Table.from_pylist(given)) == scorer.predict(given)
    assert scorer.predict(arrow.RecordBatch.from_pylist(given)) == scorer.predict(given)


def test_a_workspace_in_use_serves_nobody_else() -> None:
    scorer = scorer_of(SmallModel.make())
    plain, inner = scorer.predict(ROW), [{**ROW, "hour": hour} for hour in range(5)]
    expected = scorer.predict(inner)

    class Nosy:
        """A number that predicts while it is read."""

        def __float__(self) -> float:
            assert scorer.predict(inner) == expected and scorer.predict(inner[0])["prediction"]
            return 3.5

    assert scorer.predict({**ROW, "dep_delay": Nosy()}) == plain
    columns = {name: [value] * 2 for name, value in ROW.items()}
    for given in ([{**ROW, "dep_delay": Nosy()}] * 2, {**columns, "dep_delay": [Nosy()] * 2}):
        assert scorer.predict(given) == scorer.predict([ROW, ROW])


def test_many_threads_predict_at_once_and_each_gets_its_own_rows_answers() -> None:
    scorer, given = scorer_of(SmallModel.make()), rows(3 * BATCH_ROWS)
    expected = scorer.predict(given)
    columns = {name: [row[name] for row in given] for name in ROW}
    numbers = {name: np.array(columns[name]) for name in ("dep_delay", "distance", "hour")}

    def work(turn: int) -> None:
        for number in range(40):
            at = (turn * 97 + number * 31) % len(given)
            for form in (given[at:], {name: cells[at:] for name, cells in columns.items()}):
                assert scorer.predict(form) == expected[at:], f"from row {at}"
            assert abs(scorer.predict(given[at])["prediction"] - expected[at]["prediction"]) <= 1e-6, f"row {at}"
            scorer.predict({**numbers, "carrier": columns["carrier"]})

    run_at_once({str(turn): partial(work, turn) for turn in range(8)})
