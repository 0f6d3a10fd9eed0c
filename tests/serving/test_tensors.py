"""Tensors of the Open Inference Protocol: JSON and bytes, and each way in which one can be none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from served_http import ROW
from small_model import SmallModel

from streamtrain.serving.inferring import HEAD_LENGTH, inferred, inputs_of, outputs_of
from streamtrain.serving.model import HttpScorer
from streamtrain.serving.reply import Refusal, Reply
from streamtrain.serving.tensors import DTYPES, TensorError, read_inputs, write_output
from tests.serving.conftest import SCORER, scorer_of


def tensor(name: str, cells: list[Any], **more: Any) -> dict[str, Any]:
    is_text = isinstance(cells[0], str)
    return {"name": name, "shape": [len(cells)], "datatype": "BYTES" if is_text else "FP32", "data": cells, **more}


def request(rows: int = 3, **more: Any) -> dict[str, Any]:
    return {"inputs": [tensor(name, [cell] * rows) for name, cell in ROW.items()], **more}


def answer(document: Any, scorer: HttpScorer = SCORER) -> dict[str, Any]:
    return json.loads(inferred(scorer, "flights", json.dumps(document).encode(), None).body)


def test_columns_as_tensors_are_answered_as_a_program_is() -> None:
    found = answer(request(id="7"))
    wanted = SCORER.predict(ROW)["prediction"]
    assert (found["id"], found["model_name"], found["model_version"]) == ("7", "flights", "3")
    assert found["parameters"]["digest"] == (b"d" * 32).hex()
    (output,) = found["outputs"]
    assert {**output, "data": np.float32(output["data"]).tolist()} == {
        "name": "prediction", "datatype": "FP32", "shape": [3], "data": [float(np.float32(wanted))] * 3,
    }  # fmt: skip


def test_classes_are_texts_with_their_probabilities() -> None:
    columns = {"x": {}, "way": {"role": "label", "classes": ["walk", "sit", "lie"]}}
    scorer = scorer_of(SmallModel.make(columns, "softmax_cross_entropy"))
    found = answer({"inputs": [tensor("x", [0.7, -2.0])]}, scorer)
    answers = scorer.predict([{"x": 0.7}, {"x": -2.0}])
    outputs = {output["name"]: output for output in found["outputs"]}
    assert outputs["prediction"]["data"] == [answer["prediction"] for answer in answers]
    assert outputs["probabilities"]["shape"] == [2, 3]
    wanted = [value for answer in answers for value in answer["probabilities"].values()]
    assert np.array_equal(np.float32(outputs["probabilities"]["data"]), np.float32(wanted))
    named = {each["name"]: each["shape"] for each in outputs_of(scorer.served.shape.heads)}
    assert named == {"prediction": [-1], "probabilities": [-1, 3]}
    only = answer({"inputs": [tensor("x", [0.7])], "outputs": [{"name": "prediction"}]}, scorer)
    assert [output["name"] for output in only["outputs"]] == ["prediction"]


def test_a_vector_has_two_dimensions() -> None:
    columns = {"v": {"kind": "vector", "size": 3}, "y": {"role": "label"}}
    scorer = scorer_of(SmallModel.make(columns))
    wanted = [row["prediction"] for row in scorer.predict([{"v": [1, 2, 3]}, {"v": [4, 5, 6]}])]
    flat = {"name": "v", "shape": [2, 3], "datatype": "FP64", "data": [1, 2, 3, 4, 5, 6]}
    for given in (flat, {**flat, "data": [[1, 2, 3], [4, 5, 6]]}):
        (output,) = answer({"inputs": [given]}, scorer)["outputs"]
        assert np.array_equal(np.float32(output["data"]), np.float32(wanted))
    assert [*inputs_of(scorer.served.shape.schema)] == [{"name": "v", "datatype": "FP32", "shape": [-1, 3]}]


@pytest.mark.parametrize("datatype", sorted(DTYPES))
def test_every_datatype_is_read_from_json_and_from_bytes(datatype: str) -> None:
    values = np.array([1, 0, 1], DTYPES[datatype])
    told = {"name": "x", "shape": [3], "datatype": datatype}
    raw = b"?" + values.tobytes()  # not aligned
    binary = {**told, "parameters": {"binary_data_size": len(raw) - 1}}
    (by_bytes,) = read_inputs({"inputs": [binary]}, memoryview(raw)[1:])
    (by_json,) = read_inputs({"inputs": [{**told, "data": values.tolist()}]}, memoryview(b""))
    for found in (by_bytes, by_json):
        assert isinstance(found.cells, np.ndarray) and found.cells.tolist() == values.tolist()
    columns = {"x": {}, "y": {"role": "label"}}
    scorer = scorer_of(SmallModel.make(columns))
    assert len(scorer.outputs({"x": by_bytes.cells})) == 3


def test_texts_as_bytes_and_back() -> None:
    texts = ["", "UA", "é" * 1000]
    told, raw = write_output("p", texts, True)
    (found,) = read_inputs({"inputs": [told]}, memoryview(raw))
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
    told = {"name": "c", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": len(raw)}}
    with pytest.raises(TensorError, match="input c: expected"):
        read_inputs({"inputs": [told]}, memoryview(raw))


@pytest.mark.parametrize(("change", "said"), [
    ({"name": "dep_dely"}, "did you mean dep_delay"), ({"name": "distance"}, "expected once, got twice"),
    ({"shape": [1], "data": [1.0]}, "expected 1 rows, as dep_delay has, got 3"),
    ({"datatype": "BYTES", "data": ["x", "y", "z"]}, "row 0 at $.dep_delay: expected number"),
])  # fmt: skip
def test_a_tensor_that_does_not_fit_the_job_is_refused(change: dict[str, Any], said: str) -> None:
    document = request()
    document["inputs"][0] |= change
    with pytest.raises(Refusal) as raised:
        answer(document)
    assert raised.value.code == 400 and said in str(raised.value)
    with pytest.raises(Refusal, match="outputs: expected one of prediction, got y"):
        answer(request(outputs=[{"name": "y"}]))


@pytest.mark.parametrize(
    ("body", "size"), [(b"{", None), (b"\xff", None), (b"{}", 3), (b"[" * 100_000, None), (b"1", None)], ids=range(5)
)
def test_a_body_that_is_no_request_is_refused(body: bytes, size: int | None) -> None:
    with pytest.raises(Refusal) as raised:
        inferred(SCORER, "flights", body, size)
    assert raised.value.code == 400 and "expected" in str(raised.value)
