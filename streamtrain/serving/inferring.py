"""POST /v2/models/{job}[/versions/{version}]/infer: one input for each column, outputs as tensors, one snapshot's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain.columns.column import Column
from streamtrain.columns.kinds.media import MediaKind
from streamtrain.columns.kinds.parsed import NumberKind
from streamtrain.columns.schema import Schema
from streamtrain.errors import StreamtrainError
from streamtrain.registry import nearest
from streamtrain.serving.reply import Refusal, Reply, as_json
from streamtrain.serving.served_model import HttpScorer
from streamtrain.serving.tensors import Cells, Tensor, TensorError, datatype_of, read_inputs, write_output

HEAD_LENGTH = b"inference-header-content-length"  # bytes of JSON at a body's start, where tensors follow
PREDICTION, PROBABILITIES = "prediction", "probabilities"

Values = NDArray[Any] | list[str]


def inferred(scorer: HttpScorer, job: str, body: bytes, json_bytes: int | None) -> Reply:
    """Returns the reply to a request whose first `json_bytes` bytes are JSON; None means all of them.

    Raises Refusal with 400 if the request cannot be read, or one of its rows cannot be predicted.
    """
    try:
        document, behind = _parted(body, json_bytes)
        tensors = read_inputs(document, behind)
        columns = _columns(scorer.served.shape.schema, tensors)
        selection = _select_outputs(document)
        outputs = dict(_outputs(scorer, scorer.outputs(columns)))
    except (TensorError, StreamtrainError) as error:
        raise Refusal(400, str(error)) from None
    unknown = next((name for name in selection if name not in outputs), None)
    if unknown is not None:
        raise Refusal(400, f"outputs: expected one of {', '.join(outputs)}, got {unknown}")
    is_binary = _parameter(document, "binary_data_output") is True
    pairs = [write_output(name, outputs[name], selection.get(name, is_binary)) for name in selection or outputs]
    response = {
        "model_name": job, "model_version": str(scorer.version), **_id(document),
        "parameters": {"digest": scorer.digest, "run": scorer.served.manifest.run.number,
                       "age_s": round(max(0.0, time.time() - scorer.created_ms / 1000), 3)},
        "outputs": [output for output, _ in pairs],
    }  # fmt: skip
    return _reply(as_json(response), [raw for _, raw in pairs], tensors[0].rows, scorer.version)


def inputs_of(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yields a model's inputs as its metadata describes them."""
    for name, column in schema.columns:
        if name in schema.decoded_names:
            form, size = column.entry.cells(column), getattr(column, "size", None)
            is_number = column.entry.is_numeric(column) or isinstance(column.entry, NumberKind)
            shape = [-1] if form == "value" else [-1, size if isinstance(size, int) else -1]
            yield {"name": name, "datatype": "FP32" if is_number else "BYTES", "shape": shape}


def outputs_of(heads: Iterable[tuple[str, int, list[str], bool]]) -> Iterator[dict[str, Any]]:
    """Yields a model's outputs as its metadata describes them."""
    for name, width, classes, has_values in heads:
        of = f".{name}" if name else ""
        datatype = "FP32" if width == 1 else datatype_of(_classes(width, classes, has_values))
        yield {"name": PREDICTION + of, "datatype": datatype, "shape": [-1]}
        if width > 1:
            yield {"name": PROBABILITIES + of, "datatype": "FP32", "shape": [-1, width]}


def _parted(body: bytes, json_bytes: int | None) -> tuple[Any, memoryview]:
    size = len(body) if json_bytes is None else json_bytes
    if size > len(body):
        raise TensorError(f"{HEAD_LENGTH.decode()}: expected at most the body's {len(body):,} bytes, got {size:,}")
    try:
        return json.loads(body[:size]), memoryview(body)[size:]
    except (ValueError, RecursionError) as error:
        raise TensorError(f"body: expected JSON, got {error}") from None


def _columns(schema: Schema, tensors: list[Tensor]) -> dict[str, Cells]:
    """Raises TensorError for a name that is no column's, and tensors of several lengths."""
    known, found = dict(schema.columns), dict[str, Cells]()
    first = tensors[0]
    for tensor in tensors:
        column = known.get(tensor.name)
        if column is None:
            near = nearest(tensor.name, known)
            hint = f"; did you mean {near}?" if near else f", one of {', '.join(known)}"
            raise TensorError(f"input {tensor.name}: expected a column's name{hint}")
        if tensor.name in found:
            raise TensorError(f"input {tensor.name}: expected once, got twice")
        if tensor.rows != first.rows:
            raise TensorError(
                f"input {tensor.name}: expected {first.rows:,} rows, as {first.name} has, got {tensor.rows:,}"
            )
        found[tensor.name] = _readable(column, tensor)
    return found


def _readable(column: Column, tensor: Tensor) -> Cells:
    """Cells as programs hold them: text is str, a picture bytes."""
    if isinstance(tensor.cells, np.ndarray) or isinstance(column.entry, MediaKind):
        return tensor.cells
    try:
        return [_text(cell) for cell in tensor.cells]
    except UnicodeDecodeError as error:
        raise TensorError(f"input {tensor.name}: expected UTF-8, got {error.reason} at byte {error.start}") from None


def _text(cell: Any) -> Any:
    if type(cell) is bytes:
        return cell.decode()
    return [_text(each) for each in cell] if type(cell) is list else cell


def _outputs(scorer: HttpScorer, values: NDArray[np.float32]) -> Iterator[tuple[str, Values]]:
    at = 0
    for name, width, classes, has_values in scorer.served.shape.heads:
        of, part = f".{name}" if name else "", values[:, at : at + width]
        at += width
        if width == 1:
            yield PREDICTION + of, part[:, 0]
            continue
        known = _classes(width, classes, has_values)
        likeliest = part.argmax(1)
        yield PREDICTION + of, [known[i] for i in likeliest] if isinstance(known, list) else known[likeliest]
        yield PROBABILITIES + of, part


def _classes(width: int, classes: list[str], has_values: bool) -> Values:
    """The classes as elements of a tensor: texts, whole numbers or booleans."""
    names = [classes[i] if i < len(classes) else str(i) for i in range(width)]
    values = np.array(json.loads(f"[{','.join(names)}]")) if has_values else np.empty(0)
    return values if values.dtype.kind in "bi" else names  # 64 bits do not hold every whole number


def _select_outputs(document: dict[str, Any]) -> dict[str, bool]:
    """The outputs asked for, and whether each is to be binary; none: all are."""
    outputs = document.get("outputs") or []
    if not isinstance(outputs, list) or not all(isinstance(each, dict) and "name" in each for each in outputs):
        raise TensorError("outputs: expected a list of names, each in an object")
    is_binary = _parameter(document, "binary_data_output") is True
    found = {}
    for each in outputs:
        own = _parameter(each, "binary_data")
        found[str(each["name"])] = is_binary if own is None else own is True
    return found


def _parameter(of: dict[str, Any], name: str) -> Any:
    parameters = of.get("parameters")
    return parameters.get(name) if isinstance(parameters, dict) else None


def _id(document: dict[str, Any]) -> dict[str, Any]:
    return {"id": document["id"]} if isinstance(document.get("id"), str) else {}


def _reply(json_body: bytes, behind: list[bytes], rows: int, version: int) -> Reply:
    raw = b"".join(behind)
    if not any(behind):
        return Reply(200, json_body, rows=rows, version=version)
    head = ((HEAD_LENGTH, str(len(json_body)).encode()),)
    return Reply(200, json_body + raw, b"application/octet-stream", head, rows=rows, version=version)
