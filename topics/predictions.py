"""The predictions topic: JSON answers. The request's key and headers are echoed, ours are added.

An answer is `{"prediction": 0.83}` or `{"prediction": "walk", "probabilities": {…}}`; many rows get an array, and so
does one in an array or in columns, but for a packed record: that of one row gets the answer alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain.errors import CheckFailed
from streamtrain.topics._topic import RESERVED_HEADER_PREFIX, Message, Topic

TOPIC = Topic(
    key="predictions",
    help="answers to the requests, with the version and digest of the snapshot that made them",
    config={"cleanup.policy": "delete"},
    partitions=4,
)
VERSION_HEADER = "streamtrain-version"
DIGEST_HEADER = "streamtrain-digest"  # hex
ERROR_HEADER = "streamtrain-error"
_ERROR_BYTES = 2_000


@dataclass(frozen=True)
class Answer:
    """`prediction` is the parsed answer of one row, or a list; None with `error`. `headers` are the request's own."""

    key: bytes | None
    prediction: Any
    error: str | None
    version: int | None
    digest: str | None
    headers: tuple[tuple[str, bytes], ...] = ()


def rows(output: npt.NDArray[np.float32], classes: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One answer per row of `output` (rows, outputs): a number, or with more than one output the likeliest class.

    Classes without a name are called by their index. Numbers have the fewest digits that give the float32 back.
    """
    if output.shape[1] == 1:
        return [{"prediction": shortest(value)} for value in output[:, 0]]
    names = list(classes) or [str(index) for index in range(output.shape[1])]
    best = output.argmax(axis=1)
    return [
        {"prediction": names[top], "probabilities": dict(zip(names, map(shortest, row), strict=True))}
        for top, row in zip(best.tolist(), output, strict=True)
    ]


def shortest(value: np.float32) -> float:
    """A float whose repr has the fewest digits that give the float32 back."""
    return float(str(value))


def message(
    key: bytes | None, headers: Sequence[tuple[str, bytes]], answer: object, version: int, digest: bytes
) -> Message:
    """A good answer: `answer` is one of `rows()` or a list of them."""
    ours = ((VERSION_HEADER, str(version).encode()), (DIGEST_HEADER, digest.hex().encode()))
    return Message(key, encode(answer), (*echoed(headers), *ours))


def error_message(
    key: bytes | None, headers: Sequence[tuple[str, bytes]], text: str, version: int, digest: bytes
) -> Message:
    """The answer to a bad request: no value, the reason in a header."""
    raw = text.encode("utf-8", "replace")[:_ERROR_BYTES].decode("utf-8", "ignore").encode()
    good = message(key, headers, None, version, digest)
    return Message(key, None, (*good.headers, (ERROR_HEADER, raw)))


def encode(answer: object) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def echoed(headers: Sequence[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    """A request's headers but those with our reserved prefix."""
    return tuple(header for header in headers if not header[0].startswith(RESERVED_HEADER_PREFIX))


def decode(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]) -> Answer:
    """The answer in a message; CheckFailed says what is wrong with other messages."""
    found = dict(headers)
    error = found.get(ERROR_HEADER)
    version, digest = found.get(VERSION_HEADER), found.get(DIGEST_HEADER)
    if version is not None and not (version.isdigit() and len(version) <= 19):
        raise CheckFailed(f"prediction: expected a whole number in header {VERSION_HEADER}, got {version!r}")
    prediction = None
    if error is None:
        try:
            prediction = json.loads(value or b"")
        except (ValueError, RecursionError) as cause:
            raise CheckFailed(f"prediction: expected JSON, got {(value or b'')[:80]!r}") from cause
    return Answer(
        key=key,
        prediction=prediction,
        error=None if error is None else error.decode("utf-8", "replace"),
        version=None if version is None else int(version),
        digest=None if digest is None else digest.decode("ascii", "replace"),
        headers=echoed(headers),
    )
