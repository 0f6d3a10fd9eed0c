"""Bodies of JSON, and tensors of the Open Inference Protocol in JSON and bytes, to answers, natively: the forms,
malformed ones, and answers that are too large."""

from __future__ import annotations

import json
import re
from typing import Any

import msgpack
import numpy as np
import pytest
from example_format import is_columnar
from given_outputs import echo_plan
from served_http import ROW
from small_model import FLIGHTS, SmallModel

from streamtrain import _native
from streamtrain._native import BodyForm
from streamtrain.clients.scorer import BATCH_ROWS
from streamtrain.columns.formats import format_names
from streamtrain.columns.schema import Schema
from streamtrain.errors import RecordError
from streamtrain.serving.inferring import HEAD_LENGTH, inferred, inputs_of, outputs_of
from streamtrain.serving.predicting import predicted
from streamtrain.serving.reply import Refusal, Reply
from streamtrain.serving.served_model import BodyAnswer, HttpScorer
from streamtrain.serving.tensors import DTYPES, TensorError, read_inputs, write_output
from streamtrain.topics.predictions import decode
from tests.oracles.records import oracle
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


GAPS = SmallModel.make({"a": {"missing": 0}, "c": {"kind": "category", "buckets": 64, "missing": ""},
                        "k": {"from": "key", "kind": "category", "buckets": 8, "missing": ""},
                        "y": {"role": "label"}})  # fmt: skip
NAMES_NONE = {"A": 2.0, "C": "u"}, {"data": {"ndarray": [[2.0, "u"]]}, "a\u00e9\n": 1}, {}, {"y": 1}


def test_a_row_that_names_none_of_the_columns_is_refused_unless_the_job_accepts_it() -> None:
    strict = scorer_of(GAPS)
    lax = scorer_of(GAPS, job_settings={"predict": {"accept_empty": True}})
    formats = dict(json=lambda row: json.dumps(row).encode(), msgpack=msgpack.packb)
    for row, others in zip(NAMES_NONE, ("only A, C", "only data, a???", "no name", "only y"), strict=True):
        problem = f"expected some of the job's columns a, c, k, got {others}"
        document, _ = answer(row, strict)
        assert document["error"]["reason"] == problem and predicted(strict, json.dumps(row).encode(), False).code == 422
        with pytest.raises(RecordError, match=re.escape(problem)):
            strict.predict(row)
        assert answer(row, lax)[1].rows == 1 and lax.predict(row)["prediction"] == answer(row, lax)[0]["prediction"]
        for name, encode in formats.items():
            (body, reason, rows, errors), = strict.served.request_scorer(name, 8).score("asked", [encode(row)])
            assert (rows, errors) == (0, 1) and reason == f"$: {problem}" and b"error" in body
            assert lax.served.request_scorer(name, 8).score("asked", [encode(row)])[0][2:] == (1, 0)
    for row in ({"a": 1}, {"c": None}, {"k": "x"}, {"a": float("nan"), "q": 1}):
        assert answer(row, strict)[1].rows == 1 and strict.predict(row)["prediction"]
    assert [type(each) for each in strict.predict([{"B": 1}, {"a": 1}], "return")] == [RecordError, dict]
    whole = Schema.from_columns({"A": {}, "y": {"role": "label"}}, "mean_squared_error").for_requests()
    for name in filter(is_columnar, format_names()):
        record = oracle(name).encode(whole, {"A": np.arange(40.0)})
        assert strict.served.request_scorer(name, 64).score("asked", [record])[0][2:] == (0, 40)
        assert lax.served.request_scorer(name, 64).score("asked", [record])[0][2:] == (40, 0)


def test_envelopes_of_other_servers_hold_rows() -> None:
    rows = [{"a": 2.0, "c": "u"}, {"a": -2.0, "c": "v"}]
    scorer = scorer_of(GAPS, job_settings={"predict": {"accept_empty": True}})
    expected = scorer.predict(rows)
    columns, split = {"a": [2.0, -2.0], "c": ["u", "v"]}, {"columns": ["c", "a"], "data": [["u", 2.0], ["v", -2.0]]}
    for body in (
        {"instances": rows}, {"signature_name": "x", "instances": rows}, {"inputs": columns}, {"inputs": rows},
        {"dataframe_records": rows}, {"dataframe_split": {**split, "index": [0, 1]}}, {"params": {}, "inputs": rows},
        {"instances": [[2.0, "u", ""], [-2.0, "v", ""]]},
    ):  # fmt: skip
        reply = predicted(scorer, json.dumps(body).encode(), False)
        assert (reply.code, json.loads(reply.body)["predictions"]) == (200, expected), body
    one = scorer_of(SmallModel.make({"inputs": {}, "y": {"role": "label"}}))
    assert answer({"inputs": [1, 2]}, one)[0] == json.loads(
        predicted(one, b'{"inputs": [1, 2]}', False).body
    )["predictions"], "the job's own column"
    single = scorer_of(SmallModel.make({"x": {}, "y": {"role": "label"}}))
    assert json.loads(predicted(single, b'{"instances": [1, 2]}', False).body)["predictions"] == single.predict(
        {"x": [1, 2]}
    )
    for bad, text in (
        ({"instances": {"a": 1}}, "instances: expected a list of rows, got dict"),
        ({"instances": rows, "inputs": 1}, "one of"),
        ({"dataframe_split": {"columns": ["a"], "data": [[1, 2]]}}, r"data\[0\]: expected a list of 1 cells, got 2"),
        (request(), "/v2/models/JOB/infer"), ({"dataframe_split": []}, "columns and data"), ({"inputs": 1}, "got int"),
        ({"dataframe_records": 1}, "got int"),
    ):  # fmt: skip
        with pytest.raises(Refusal, match=text) as refused:
            predicted(scorer, json.dumps(bad).encode(), False)
        assert refused.value.code == 400
    assert predicted(scorer, b'{"instances": [', False).code == 400


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
    scorer = _native.BodyScorer(plan, schema.native_plan(layout), [("", plan.width, [], True)], 1 << 20)
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
    assert many[0] == SCORER.predict(ROW) and many[1]["error"]["path"] == "$[1]"


def tensor(name: str, cells: list[Any], **more: Any) -> dict[str, Any]:
    is_text = isinstance(cells[0], str)
    return {"name": name, "shape": [len(cells)], "datatype": "BYTES" if is_text else "FP32", "data": cells, **more}


def request(rows: int = 3, **more: Any) -> dict[str, Any]:
    return {"inputs": [tensor(name, [cell] * rows) for name, cell in ROW.items()], **more}


def tensor_answer(document: Any, scorer: HttpScorer = SCORER) -> dict[str, Any]:
    return json.loads(inferred(scorer, "flights", json.dumps(document).encode(), None).body)


def test_columns_as_tensors_are_answered_as_a_program_is() -> None:
    found = tensor_answer(request(id="7"))
    expected = SCORER.predict(ROW)["prediction"]
    assert (found["id"], found["model_name"], found["model_version"]) == ("7", "flights", "3")
    assert found["parameters"]["digest"] == (b"d" * 32).hex()
    (output,) = found["outputs"]
    assert {**output, "data": np.float32(output["data"]).tolist()} == {
        "name": "prediction", "datatype": "FP32", "shape": [3], "data": [float(np.float32(expected))] * 3,
    }  # fmt: skip


CLASSES = [["walk", "sit", "lie"], ["5", "-1", "7"], [5, -1, 7], [False, True], 3, [1 << 40, 0, 2], [1 << 70, 0, 2]]


@pytest.mark.parametrize("classes", CLASSES)
def test_classes_are_what_the_label_says_with_their_probabilities(classes: Any) -> None:
    """In a program's answer, in a request's and a body's JSON and as tensors; keys of probabilities are texts."""
    columns = {"x": {}, "way": {"role": "label", "classes": classes}}
    known = [*range(classes)] if isinstance(classes, int) else classes
    small = SmallModel.make(columns, "softmax_cross_entropy")
    scorer, rows = scorer_of(small), [{"x": at / 3 - 5} for at in range(30)]
    answers = scorer.predict(rows)
    assert {type(answer["prediction"]) for answer in answers} == {type(known[0])}
    for answer in answers:
        assert list(answer["probabilities"]) == [each if isinstance(each, str) else json.dumps(each) for each in known]
        likeliest = max(answer["probabilities"], key=answer["probabilities"].__getitem__)
        assert answer["prediction"] == known[list(answer["probabilities"]).index(likeliest)]
    assert json.loads(scorer.answer_body(json.dumps(rows).encode(), False).text) == answers
    ((body, *_),) = scorer.served.request_scorer("json", 8).score("asked", [json.dumps(rows).encode()])
    assert json.loads(body) == answers == decode(None, body, ()).prediction
    found = tensor_answer({"inputs": [tensor("x", [row["x"] for row in rows])]}, scorer)
    (prediction,) = [output for output in found["outputs"] if output["name"] == "prediction"]
    as_text = isinstance(known[0], str) or max(map(abs, known)) >= 1 << 63
    assert prediction["datatype"] == ("BYTES" if as_text else "BOOL" if known == [False, True] else "INT64")
    assert prediction["data"] == [str(each["prediction"]) if as_text else each["prediction"] for each in answers]
    assert prediction["datatype"] == next(outputs_of(scorer.served.shape.heads))["datatype"]
    shares = next(output for output in found["outputs"] if output["name"] == "probabilities")
    expected = [value for answer in answers for value in answer["probabilities"].values()]
    assert shares["shape"] == [30, len(known)] and np.array_equal(np.float32(shares["data"]), np.float32(expected))
    only = tensor_answer({"inputs": [tensor("x", [0.7])], "outputs": [{"name": "prediction"}]}, scorer)
    assert [output["name"] for output in only["outputs"]] == ["prediction"]


def test_a_vector_has_two_dimensions() -> None:
    columns = {"v": {"kind": "vector", "size": 3}, "y": {"role": "label"}}
    scorer = scorer_of(SmallModel.make(columns))
    expected = [row["prediction"] for row in scorer.predict([{"v": [1, 2, 3]}, {"v": [4, 5, 6]}])]
    flat = {"name": "v", "shape": [2, 3], "datatype": "FP64", "data": [1, 2, 3, 4, 5, 6]}
    for given in (flat, {**flat, "data": [[1, 2, 3], [4, 5, 6]]}):
        (output,) = tensor_answer({"inputs": [given]}, scorer)["outputs"]
        assert np.array_equal(np.float32(output["data"]), np.float32(expected))
    assert [*inputs_of(scorer.served.shape.schema)] == [{"name": "v", "datatype": "FP32", "shape": [-1, 3]}]


@pytest.mark.parametrize("datatype", sorted(DTYPES))
def test_every_datatype_is_read_from_json_and_from_bytes(datatype: str) -> None:
    values = np.array([1, 0, 1], DTYPES[datatype])
    header = {"name": "x", "shape": [3], "datatype": datatype}
    raw = b"?" + values.tobytes()  # not aligned
    binary = {**header, "parameters": {"binary_data_size": len(raw) - 1}}
    (by_bytes,) = read_inputs({"inputs": [binary]}, memoryview(raw)[1:])
    (by_json,) = read_inputs({"inputs": [{**header, "data": values.tolist()}]}, memoryview(b""))
    for found in (by_bytes, by_json):
        assert isinstance(found.cells, np.ndarray) and found.cells.tolist() == values.tolist()
    columns = {"x": {}, "y": {"role": "label"}}
    scorer = scorer_of(SmallModel.make(columns))
    assert len(scorer.outputs({"x": by_bytes.cells})) == 3


def test_texts_as_bytes_and_back() -> None:
    texts = ["", "UA", "é" * 1000]
    header, raw = write_output("p", texts, True)
    (found,) = read_inputs({"inputs": [header]}, memoryview(raw))
    assert found.cells == [text.encode() for text in texts]
    assert write_output("p", texts, False) == ({"name": "p", "datatype": "BYTES", "shape": [3], "data": texts}, b"")


def test_a_binary_answer_stands_behind_its_json() -> None:
    body = json.dumps(request(2, parameters={"binary_data_output": True})).encode()
    reply: Reply = inferred(SCORER, "flights", body, None)
    (length,) = (int(value) for name, value in reply.headers if name == HEAD_LENGTH)
    (output,) = json.loads(reply.body[:length])["outputs"]
    assert output["parameters"] == {"binary_data_size": 8} and "data" not in output
    assert np.frombuffer(reply.body[length:], "<f4").tolist() == [np.float32(SCORER.predict(ROW)["prediction"])] * 2


X = {"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}
WRONG: dict[str, Any] = {
    "a list of tensors": {}, "got none": {"inputs": []}, "with a name": {"inputs": [{}]},
    "a shape of": {"inputs": [{**X, "shape": [-1]}]}, "shape of [rows]": {"inputs": [{**X, "shape": [1, 1, 1]}]},
    "a datatype of": {"inputs": [{**X, "datatype": "FP8"}]}, "got [2, True]": {"inputs": [{**X, "shape": [2, True]}]},
    "expected 1,180,591,620,717,411,303,424 elements": {"inputs": [{**X, "shape": [1 << 70]}]},
    "expected 3 elements": {"inputs": [{**X, "shape": [3]}]}, "got str": {"inputs": [{**X, "data": ["1", 2]}]},
    "got dict": {"inputs": [{**X, "data": [{}, 1]}]}, "data as a list": {"inputs": [{**X, "data": "12"}]},
    "elements of INT8": {"inputs": [{**X, "datatype": "INT8", "data": [1, 400]}]},
    "elements of BYTES": {"inputs": [{**X, "datatype": "BYTES"}]},
    "expected 8 bytes behind the JSON": {"inputs": [{**X, "parameters": {"binary_data_size": 8}}]},
    "a binary_data_size": {"inputs": [{**X, "parameters": {"binary_data_size": -1}}]},
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_tensor_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(TensorError) as raised:
        read_inputs(WRONG[wrong], memoryview(b""))
    assert wrong in str(raised.value)


@pytest.mark.parametrize("raw", [
    b"", b"\x01", b"\x05\0\0\0ab", b"\x01\0\0\0a", b"\x01\0\0\0a\x01\0\0\0bc", b"\xff\xff\xff\xff",
])  # fmt: skip
def test_texts_that_do_not_fill_their_bytes_are_refused(raw: bytes) -> None:
    header = {"name": "c", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(raw)}}
    with pytest.raises(TensorError, match="input c: expected"):
        read_inputs({"inputs": [header]}, memoryview(raw))


@pytest.mark.parametrize(("change", "said"), [
    ({"name": "dep_dely"}, "did you mean dep_delay"), ({"name": "distance"}, "expected once, got twice"),
    ({"shape": [1], "data": [1.0]}, "expected 1 rows, as dep_delay has, got 3"),
    ({"datatype": "BYTES", "data": ["x", "y", "z"]}, "row 0 at $.dep_delay: expected number"),
])  # fmt: skip
def test_a_tensor_that_does_not_fit_the_job_is_refused(change: dict[str, Any], said: str) -> None:
    document = request()
    document["inputs"][0] |= change
    with pytest.raises(Refusal) as raised:
        tensor_answer(document)
    assert raised.value.code == 400 and said in str(raised.value)
    with pytest.raises(Refusal, match="outputs: expected one of prediction, got y"):
        tensor_answer(request(outputs=[{"name": "y"}]))


@pytest.mark.parametrize(
    ("body", "size"), [(b"{", None), (b"\xff", None), (b"{}", 3), (b"[" * 100_000, None), (b"1", None)], ids=range(5)
)
def test_a_body_that_is_no_request_is_refused(body: bytes, size: int | None) -> None:
    with pytest.raises(Refusal) as raised:
        inferred(SCORER, "flights", body, size)
    assert raised.value.code == 400 and "expected" in str(raised.value)
