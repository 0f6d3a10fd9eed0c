"""Bodies as clients of TensorFlow Serving, KServe (V1) and MLflow send them: the rows within, as JSON of our own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from streamtrain.columns.schema import Schema
from streamtrain.serving.reply import Refusal

_OTHERS = "signature_name", "params", "parameters", "client_request_id"  # that may stand before the rows


def unwrapped(body: bytes, schema: Schema) -> bytes:
    """Returns the rows of a body in such an envelope; any other body as it is, also one whose job has a column of the
    envelope's name. Raises Refusal with 400 for an envelope that holds no rows."""
    begins = _BEGINS.match(body)
    if begins is None or begins[1].decode() in schema.decoded_names | schema.heads:
        return body
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):  # the decoder says where
        return body
    found = [key for key in _ROWS if key in document]
    if len(found) > 1:
        raise Refusal(400, f"body: expected one of {', '.join(_ROWS)}, got {' and '.join(found)}")
    return json.dumps(_ROWS[found[0]](document[found[0]])).encode() if found else body


def _instances(given: Any) -> list[Any]:
    """One element a row; a plain value is a row of one column."""
    if not isinstance(given, list):
        raise Refusal(400, f"instances: expected a list of rows, got {_kind(given)}")
    return [row if isinstance(row, list | dict) else [row] for row in given]


def _inputs(given: Any) -> Any:
    """Columns by name, or rows."""
    if isinstance(given, dict):
        return given
    if not isinstance(given, list):
        raise Refusal(400, f"inputs: expected an object of columns or a list of rows, got {_kind(given)}")
    if any(isinstance(each, dict) and {"name", "datatype", "data"} <= each.keys() for each in given):
        raise Refusal(400, "inputs: expected columns or rows, got tensors of the Open Inference Protocol; send them to "
                           "/v2/models/JOB/infer")  # fmt: skip
    return _instances(given)


def _records(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise Refusal(400, f"dataframe_records: expected a list of objects, got {_kind(given)}")
    return given


def _split(given: Any) -> list[dict[str, Any]]:
    names, data = (given.get("columns"), given.get("data")) if isinstance(given, dict) else (None, None)
    if not isinstance(names, list) or not isinstance(data, list) or not all(isinstance(each, str) for each in names):
        raise Refusal(400, "dataframe_split: expected an object with the lists columns and data, got none")
    for at, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(names):
            got = f"{len(row):,}" if isinstance(row, list) else _kind(row)
            raise Refusal(400, f"dataframe_split.data[{at}]: expected a list of {len(names):,} cells, got {got}")
    return [dict(zip(names, row, strict=True)) for row in data]


def _kind(given: Any) -> str:
    return "null" if given is None else type(given).__name__


_ROWS: dict[str, Callable[[Any], Any]] = {
    "instances": _instances, "inputs": _inputs, "dataframe_records": _records, "dataframe_split": _split,
}  # fmt: skip
_BEGINS = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(%b)"' % "|".join((*_ROWS, *_OTHERS)).encode())
