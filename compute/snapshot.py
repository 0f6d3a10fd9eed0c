"""A model's state ⇄ two safetensors payloads: parameters with statistics, and trainer state (optimizer, scores).

Names, shapes and types come from the state's layout; loading checks them all. Nothing else is read from the bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import DTYPES, Array
from streamtrain.compute.state import Layout, block_dtype, views
from streamtrain.errors import SnapshotError

MODEL_GROUPS = ("parameters", "statistics")
TRAINER_GROUPS = ("optimizer", "score", "window")
# what rules store, by the format's codes, which are our names in capitals
_DTYPES = {name.upper(): np.dtype(DTYPES[name]) for name in sorted({*chain(*_native.state_rules().values())})}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_ALIGNMENT = 64  # bytes; where the tensors begin, so that views of a payload in a page-aligned buffer are aligned
_HEADER_LIMIT = 100_000_000  # bytes, as in the safetensors format


def model_payload(layout: Layout, state: bytes | memoryview | Array) -> bytes:
    """Parameters and statistics as safetensors bytes; a state always gives the same bytes."""
    return encode(_group_views(layout, state, MODEL_GROUPS))


def trainer_payload(layout: Layout, state: bytes | memoryview | Array) -> bytes:
    """Optimizer state and scores as safetensors bytes."""
    return encode(_group_views(layout, state, TRAINER_GROUPS))


def _group_views(layout: Layout, state: bytes | memoryview | Array, groups: Sequence[str]) -> dict[str, Array]:
    group_blocks = _groups_of(layout, groups)
    return {name: block for name, block in views(layout, state).items() if name in group_blocks}


def _groups_of(layout: Layout, groups: Sequence[str]) -> dict[str, _native.StateBlock]:
    return {block.name: block for block in layout.blocks if block.group in groups}


def load(
    layout: Layout,
    state: memoryview | Array,
    model: bytes | memoryview,
    trainer: bytes | memoryview | None = None,
    put: Callable[[Array, Array], None] = np.copyto,
) -> None:
    """Copies payloads into `state` by `put`; without `trainer` the optimizer and score blocks stay as they are.

    SnapshotError names every tensor that is missing, unknown, or of another shape or type; nothing is copied then.
    """
    raw = np.frombuffer(state, np.uint8)
    assert raw.flags.writeable and len(raw) == layout.state_bytes, (raw.flags.writeable, len(raw), layout.state_bytes)
    groups = MODEL_GROUPS if trainer is None else MODEL_GROUPS + TRAINER_GROUPS
    found = decode(model) | (decode(trainer) if trainer is not None else {})
    check(layout, found, groups)
    group_blocks = _groups_of(layout, groups)
    for name, block in views(layout, raw).items():
        if name in group_blocks:
            put(block, found[name])


def check(
    layout: Layout, found: Mapping[str, Array] | Mapping[str, Place], groups: Sequence[str] = MODEL_GROUPS
) -> None:
    """SnapshotError names every tensor that is missing, unknown, or of another shape or type than the layout's."""
    if problems := differences(layout, found, groups):
        raise SnapshotError(
            "snapshot does not fit the model: " + "; ".join(problems) + "; start a new lineage with --fresh, or "
            "take the columns, model and optimizer back to what the snapshot was trained with"
        )


def differences(
    layout: Layout, found: Mapping[str, Array] | Mapping[str, Place], groups: Sequence[str]
) -> list[str]:
    """Each tensor that is missing, unknown, or of another shape or type than the layout's."""
    problems, group_blocks = [], _groups_of(layout, groups)
    for name, block in group_blocks.items():
        expected = f"{_CODES[block_dtype(block)]}{list(block.shape)}"
        got = f"{_CODES[found[name].dtype]}{list(found[name].shape)}" if name in found else "nothing"
        if expected != got:
            problems.append(f"{name}: expected {expected}, got {got}")
    return problems + [f"{name}: unknown to the model" for name in found if name not in group_blocks]


def encode(tensors: Mapping[str, Array]) -> bytes:
    """Safetensors bytes of float32, float64 and int64 arrays in the given order; equal arrays give equal bytes.

    The format (https://huggingface.co/docs/safetensors) is a u64 header length, a JSON header and the tensors' bytes;
    written here because the library copies every tensor twice and orders them itself.
    """
    header: dict[str, object] = {}
    at = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": _CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    pieces: list[Any] = [_head(header)]
    pieces += [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in tensors.values() if array.size]
    return b"".join(pieces)


def _head(header: Mapping[str, object]) -> bytes:
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def with_metadata(payload: bytes, metadata: Mapping[str, str]) -> bytes:
    """The same tensors under a header that holds `metadata` too, as other programs of the format read it."""
    length = int.from_bytes(payload[:8], "little")
    header = {"__metadata__": dict(metadata), **json.loads(payload[8 : 8 + length])}
    return _head(header) + payload[8 + length :]


def decode(payload: bytes | memoryview) -> dict[str, Array]:
    """The arrays of safetensors bytes, as views of them; SnapshotError where the bytes are not what they claim."""
    view = memoryview(payload).cast("B")
    found = places(len(view), lambda begin, end: view[begin:end])
    return {
        name: np.frombuffer(view[each.begin : each.end], each.dtype).reshape(each.shape)
        for name, each in found.items()
    }


class Place(NamedTuple):
    """The place of an array in its payload."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


def places(size: int, read: Callable[[int, int], bytes | memoryview]) -> dict[str, Place]:
    """By name, of `size` bytes of which `read(begin, end)` gives some; raises as decode()."""
    length = int.from_bytes(read(0, min(8, size)), "little")
    if size < 8 or not 2 <= length <= min(size - 8, _HEADER_LIMIT):
        raise SnapshotError(f"safetensors: expected a header within {size} bytes, got a header of {length} bytes")
    try:
        header = json.loads(bytes(read(8, 8 + length)))
    except (ValueError, RecursionError) as cause:
        begins = bytes(read(8, min(88, size)))
        raise SnapshotError(f"safetensors: expected a JSON header, got {begins!r}") from cause
    if not isinstance(header, dict):
        raise SnapshotError(f"safetensors: expected a JSON map, got {type(header).__name__}")
    header.pop("__metadata__", None)
    data, end = 8 + length, 0
    found: dict[str, Place] = {}
    for name, entry in header.items():
        dtype, shape, begin, end = _decode_tensor(name, entry, size - data, end)
        found[name] = Place(dtype, shape, data + begin, data + end)
    if end != size - data:
        raise SnapshotError(f"safetensors: expected {end} bytes of tensors, got {size - data}")
    return found


def _decode_tensor(name: str, entry: object, size: int, begin: int) -> Place:
    """The array that follows the one before without a hole, counted from where the arrays begin."""
    match entry:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(start), int(end)], **rest}:
            sizes_fit = all(type(size) is int and 0 <= size < 2**40 for size in shape) and len(shape) <= 8
            if code in _DTYPES and sizes_fit and not rest and start == begin:
                dtype = _DTYPES[code]
                count = math.prod(shape)
                if end - start == count * dtype.itemsize and end <= size:
                    return Place(dtype, tuple(shape), start, end)
    raise SnapshotError(
        f"safetensors: {name}: expected a float32, float64 or int64 tensor within {size} bytes from {begin}, "
        f"got {entry!r:.120}"
    )
