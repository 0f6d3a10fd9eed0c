"""Tensors of the Open Inference Protocol: JSON, and bytes behind it (Triton's extension "binary_tensor_data").

https://github.com/kserve/open-inference-protocol and Triton's docs/protocol/extension_binary_data.md. Knows no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTES = "BYTES"
DTYPES = {
    "BOOL": "?", "UINT8": "<u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "<i1", "INT16": "<i2",
    "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
_NUMBERS = frozenset((int, float, bool, type(None)))
_TEXTS = frozenset((str, type(None)))
_LENGTH = 4  # bytes before each element of BYTES, its length, little endian

Cells = NDArray[Any] | list[Any]


class TensorError(ValueError):
    """A tensor that is none: what was expected and got."""


@dataclass(frozen=True)
class Tensor:
    """An input: `cells` has an element for each row, of a tensor of two dimensions a list."""

    name: str
    rows: int
    cells: Cells


def read_inputs(document: Any, behind: memoryview) -> list[Tensor]:
    """The inputs of a request; `behind`: the bytes after its JSON, each of them one tensor's. TensorError."""
    inputs = document.get("inputs") if isinstance(document, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise TensorError("inputs: expected a list of tensors, got none")
    found: list[Tensor] = []
    used = 0
    for at, given in enumerate(inputs):
        where = f"inputs[{at}]"
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise TensorError(f"{where}: expected a tensor with a name, got {_format(given)}")
        where = f"input {given['name']}"
        shape, datatype = _shape(given, where), given.get("datatype")
        if datatype != BYTES and datatype not in DTYPES:
            raise TensorError(f"{where}: expected a datatype of {', '.join((*DTYPES, BYTES))}, got {_format(datatype)}")
        size = _binary_size(given, where)
        if size is None:
            cells = _of_json(given.get("data"), datatype, shape, where)
        else:
            if size > len(behind) - used:
                raise TensorError(f"{where}: expected {size:,} bytes behind the JSON, got {len(behind) - used:,}")
            cells = _of_bytes(behind[used : used + size], datatype, shape, where)
            used += size
        found.append(Tensor(given["name"], shape[0], cells))
    if used != len(behind):
        raise TensorError(f"inputs: expected {used:,} bytes behind the JSON, got {len(behind):,}")
    return found


def datatype_of(values: NDArray[Any] | list[str]) -> str:
    """The datatype of an output: of texts, booleans, whole numbers or fractions."""
    return BYTES if isinstance(values, list) else {"b": "BOOL", "i": "INT64"}.get(values.dtype.kind, "FP32")


def write_output(name: str, values: NDArray[Any] | list[str], binary: bool) -> tuple[dict[str, Any], bytes]:
    """An output as it stands in JSON, and its bytes behind that, where it is binary."""
    output: dict[str, Any] = {
        "name": name, "datatype": datatype_of(values),
        "shape": [len(values)] if isinstance(values, list) else list(values.shape),
    }  # fmt: skip
    if not binary:
        return {**output, "data": values if isinstance(values, list) else values.ravel().tolist()}, b""
    if isinstance(values, list):
        texts = [text.encode() for text in values]
        raw = b"".join(len(text).to_bytes(_LENGTH, "little") + text for text in texts)
    else:
        raw = values.astype(DTYPES[datatype_of(values)]).tobytes()
    return {**output, "parameters": {"binary_data_size": len(raw)}}, raw


def _shape(given: Mapping[str, Any], where: str) -> list[int]:
    shape = given.get("shape")
    if not isinstance(shape, list) or len(shape) not in (1, 2) or not all(type(n) is int and n >= 0 for n in shape):
        raise TensorError(f"{where}: expected a shape of [rows] or [rows, elements], got {_format(shape)}")
    return shape


def _binary_size(given: Mapping[str, Any], where: str) -> int | None:
    parameters = given.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None and (type(size) is not int or size < 0):
        raise TensorError(f"{where}: expected a binary_data_size of bytes, got {_format(size)}")
    return size


def _of_json(data: Any, datatype: str, shape: Sequence[int], where: str) -> Cells:
    count = int(np.prod(shape, dtype=object))
    if not isinstance(data, list):
        raise TensorError(f"{where}: expected data as a list, got {_format(data)}")
    if len(shape) == 2 and data and all(type(row) is list for row in data):  # nested: also allowed
        data = [cell for row in data for cell in row]
    if len(data) != count:
        raise TensorError(f"{where}: expected {count:,} elements for the shape {list(shape)}, got {len(data):,}")
    wrong = set(map(type, data)) - (_TEXTS if datatype == BYTES else _NUMBERS)
    if wrong:
        raise TensorError(f"{where}: expected elements of {datatype}, got {wrong.pop().__name__}")
    if datatype == BYTES or None in data:  # a list has its missing cells
        return _in_rows(data, shape)
    try:
        return _in_rows(np.array(data, DTYPES[datatype]), shape)
    except (OverflowError, TypeError, ValueError) as error:
        raise TensorError(f"{where}: expected elements of {datatype}, got {error}") from None


def _of_bytes(raw: memoryview, datatype: str, shape: Sequence[int], where: str) -> Cells:
    count = int(np.prod(shape, dtype=object))
    if datatype == BYTES:
        return _in_rows(_texts(raw, count, where), shape)
    dtype = np.dtype(DTYPES[datatype])
    if len(raw) != count * dtype.itemsize:
        expected = f"{count * dtype.itemsize:,} bytes for {datatype} of the shape {list(shape)}"
        raise TensorError(f"{where}: expected {expected}, got {len(raw):,}")
    return _in_rows(np.frombuffer(raw, dtype).copy(), shape)  # aligned, as a part of a body need not be


def _texts(raw: memoryview, count: int, where: str) -> list[bytes]:
    found: list[bytes] = []
    at, end = 0, len(raw)
    while at + _LENGTH <= end and len(found) < count:
        size = int.from_bytes(raw[at : at + _LENGTH], "little")
        at += _LENGTH
        found.append(bytes(raw[at : at + size]))
        at += size
    if len(found) != count or at != end:
        raise TensorError(f"{where}: expected {count:,} elements in {end:,} bytes, got {len(found):,} in {at:,}")
    return found


def _in_rows(cells: Cells, shape: Sequence[int]) -> Cells:
    """An element for each row."""
    if len(shape) == 1:
        return cells.astype("<f4") if isinstance(cells, np.ndarray) and cells.dtype.itemsize == 2 and (
            cells.dtype.kind == "f"
        ) else cells  # fmt: skip
    rows, width = shape
    flat = cells.tolist() if isinstance(cells, np.ndarray) else cells
    return [flat[row * width : (row + 1) * width] for row in range(rows)]


def _format(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 100 else f"{text[:100]}…"
