"""Bodies of JSON to the JSON of answers, natively: the forms, malformed bodies, and answers that are too large."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from given_outputs import echo_plan
from served_http import ROW
from small_model import FLIGHTS, SmallModel

from streamtrain import _native
from streamtrain._native import BodyForm
from streamtrain.clients.scorer import BATCH_ROWS
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.serving.model import BodyAnswer, HttpScorer
from streamtrain.serving.predicting import predicted
from tests.serving.conftest import SCORER, scorer_of


def answer(body: Any, scorer: HttpScorer = SCORER, released: bool = False) -> tuple[Any, BodyAnswer]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = scorer.answer_body(raw, released)
    return json.loads(found.text), found


@pytest.mark.parametrize("count", [0, 1, 2, BATCH_ROWS, BATCH_ROWS + 1, 3 * BATCH_ROWS])
@pytest.mark.parametrize("released", [False, True])
def test_rows_are_answered_as_a_program_is(count: int, released: bool) -> None:
    rows = [{**ROW, "hour": at % 24, "carrier": f"C{at % 40}"} for at in range(count)]
    expected = SCORER.predict(rows)
    assert answer(rows, released=released)[0] == expected
    if count:
        columns = {name: [row[name] for row in rows] for name in ROW}
        assert answer(columns, released=released)[0] == expected
        lines = b"\n".join(json.dumps(row).encode() for row in rows)
        assert answer(lines, released=released)[0] == (expected if count > 1 else expected[0])


def test_a_bad_row_has_its_error_in_its_place() -> None:
    rows = [{**ROW, "hour": at} for at in range(600)]
    rows[0]["hour"], rows[255]["hour"], rows[256]["hour"], rows[599] = "x", None, [], {"hour": 1}
    document, found = answer(rows)
    assert (found.form, found.rows, found.errors) == (BodyForm.ROWS, 596, 4)
    errors = {at: row["error"] for at, row in enumerate(document) if "error" in row}
    assert {at: error["path"] for at, error in errors.items()} == {
        0: "$[0].hour", 255: "$[255].hour", 256: "$[256].hour", 599: "$[599].distance",
    }  # fmt: skip
    assert errors[0] == {"path": "$[0].hour", "reason": 'expected number, got "x"', "where": "body row 0"}
    good = [at for at in range(600) if at not in errors]
    assert [document[at] for at in good] == SCORER.predict([rows[at] for at in good])


BROKEN = (
    b"", b" ", b"{", b"[", b"nope", b"nul", b"1", b'"text"', b"[1", b'[{"a":1},', b'[{"hour":1}] x', b"\x00",
    b"\xff\xfe",
    b'{"hour":1} trailing', b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"[" * 1000 + b"]" * 1000 + b"}",
)  # fmt: skip


@pytest.mark.parametrize("body", BROKEN, ids=range(len(BROKEN)))
def test_a_body_that_is_no_json_is_broken_as_a_whole(body: bytes) -> None:
    document, found = answer(body)
    assert (found.form, found.rows, found.errors) == (BodyForm.BROKEN, 0, 1), found
    error = document["error"]
    assert "expected " in error["reason"] or "deeper than 256" in error["reason"]
    assert error["where"].startswith("body")


@pytest.mark.parametrize("body", [
    b'{"dep_delay":1,"distance":NaN,"hour":1,"carrier":"a"}', b'{"distance":1e999,"hour":1,"carrier":"a"}',
    b'{"distance":1,"hour":1,"carrier":"\xff"}', b'{"distance":1,"hour":1,"carrier":"\\ud800"}',
    b'{"dep_delay":1,"distance":Infinity,"hour":1,"carrier":"a"}', b"{}", b'{"unknown":1}',
])  # fmt: skip
def test_a_row_that_cannot_be_used_is_one_error(body: bytes) -> None:
    document, found = answer(body)
    assert (found.form, found.rows, found.errors) == (BodyForm.ROW, 0, 1)
    assert document["error"]["where"] == "body"
    assert json.loads(found.text.decode()) == document


def test_one_row_is_an_object_and_unknown_fields_are_ignored() -> None:
    more = {"unknown": {"deep": [1, {"x": None}]}, "late": "anything", "\u00e9": 1}
    for row in (ROW, {**ROW, **more}):
        document, found = answer(row)
        assert document == SCORER.predict(ROW) and found[1:] == (BodyForm.ROW, 1, 0)


@pytest.mark.parametrize("seed", range(3))
def test_any_bytes_are_answered(seed: int) -> None:
    random = np.random.default_rng(seed)
    whole = json.dumps([ROW, {**ROW, "hour": 3}]).encode()
    for cut in range(len(whole)):
        assert answer(whole[:cut])[1].form is BodyForm.BROKEN
    for _ in range(300):
        mutated = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            mutated[at] = random.integers(0, 256)
        document, found = answer(bytes(mutated))
        assert found.rows + found.errors == (len(document) if isinstance(document, list) else 1)


def test_an_answer_that_is_too_large_is_refused() -> None:
    scorer = scorer_of(SmallModel.make(), most=10_000)
    assert answer([ROW] * 100, scorer)[1].form is BodyForm.ROWS
    for rows in ([ROW] * 1000, [{}] * 1000):
        document, found = answer(rows, scorer)
        assert (found.form, found.rows) == (BodyForm.TOO_LARGE, 0) and len(found.text) < 1000
        assert "at most 10,000 bytes" in document["error"]["reason"]
    assert answer(ROW, scorer)[0] == scorer.predict(ROW)


def test_predictions_that_are_not_finite_are_errors() -> None:
    schema = Schema.from_columns({"a": {}, "y": {"role": "label"}}, "mean_squared_error").for_requests()
    plan, layout = echo_plan(schema, overflow=100)
    scorer = _native.BodyScorer(plan, native_plan(schema, layout), [("", plan.width, [])], 1 << 20)
    text, form, rows, errors = scorer.score(b"[[1],[1000],[2],[3],[1000],[4]]", False)
    assert (form, rows, errors) == (BodyForm.ROWS, 4, 2)
    document = json.loads(text)
    assert [row.get("prediction") for row in document] == [1, None, 2, 3, None, 4]
    assert document[4]["error"]["where"] == "body row 4"


def test_what_stands_around_a_record_is_a_field_of_a_body() -> None:
    columns = {**FLIGHTS, "hour": {"from": "headers.hour", "parse": "decimal"}}
    scorer = scorer_of(SmallModel.make(columns))
    assert answer({**ROW, "hour": "2"}, scorer)[0] == scorer.predict({**ROW, "hour": "2"})
    assert answer({**ROW, "hour": "x"}, scorer)[1].errors == 1


def test_a_reply_says_whose_it_is() -> None:
    for body, code in ((b"[]", 200), (json.dumps(ROW).encode(), 200), (b"{}", 422), (b"{", 400)):
        reply = predicted(SCORER, body, False)
        document = json.loads(reply.body)
        assert (reply.code, reply.version, document["version"], document["run"]) == (code, 3, 3, 3)
        assert document["digest"] == (b"d" * 32).hex() and document["age_s"] > 0
    many = json.loads(predicted(SCORER, json.dumps([ROW, {}]).encode(), False).body)["predictions"]
    assert many[0] == SCORER.predict(ROW) and many[1]["error"]["path"] == "$[1].distance"
