"""The prediction wire: JSON as promised, headers echoed, reserved ones ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from streamtrain.errors import CheckFailed
from streamtrain.topics import predictions

GOLDEN = Path(__file__).parents[1] / "golden"
DIGEST = bytes(range(32))
REQUEST_HEADERS = (("trace", b"\x00\xff"), ("streamtrain-version", b"forged"), ("trace", b"2"))


def test_golden_answers() -> None:
    lines = [
        predictions.encode(predictions.rows(np.array([[0.83]], np.float32))[0]),
        predictions.encode(predictions.rows(np.array([[0.1], [1e-9], [16777216]], np.float32))),
        predictions.encode(predictions.rows(np.array([[0.75, 0.25]], np.float32), ["walk", "sit"])[0]),
        predictions.encode(predictions.rows(np.array([[0.25, 0.5, 0.25]], np.float32))[0]),
    ]
    assert b"\n".join(lines) + b"\n" == (GOLDEN / "predictions.v1.jsonl").read_bytes()


def test_numbers_give_the_float32_back() -> None:
    values = np.random.default_rng(1).random((200, 1), np.float32)
    again = [row["prediction"] for row in json.loads(predictions.encode(predictions.rows(values)))]
    assert np.array_equal(np.array(again, np.float32), values[:, 0])


def test_key_and_headers_are_echoed_and_reserved_ones_are_ours() -> None:
    message = predictions.message(b"k", REQUEST_HEADERS, {"prediction": 0.5}, 12, DIGEST)
    assert message.key == b"k" and message.value == b'{"prediction":0.5}'
    assert message.headers == (
        ("trace", b"\x00\xff"), ("trace", b"2"), ("streamtrain-version", b"12"),
        ("streamtrain-digest", DIGEST.hex().encode()),
    )  # fmt: skip
    answer = predictions.decode(message.key, bytes(message.value), message.headers)
    assert (answer.prediction, answer.version, answer.digest) == ({"prediction": 0.5}, 12, DIGEST.hex())
    assert answer.error is None and answer.headers == (("trace", b"\x00\xff"), ("trace", b"2"))


def test_a_bad_request_is_answered_by_a_header() -> None:
    message = predictions.error_message(None, (), "$.x: expected number\ud800" + "é" * 5000, 12, DIGEST)
    answer = predictions.decode(message.key, None, message.headers)
    assert answer.error is not None and answer.error.startswith("$.x: expected number?é") and answer.prediction is None
    assert len(answer.error.encode()) <= 2000


@pytest.mark.parametrize(
    ("value", "headers"), [(b"{", ()), (None, ()), (b"[" * 10**5, ()), (b"1", [("streamtrain-version", b"x")])]
)
def test_other_messages_are_an_error(value: bytes | None, headers: object) -> None:
    with pytest.raises(CheckFailed, match="prediction"):
        predictions.decode(None, value, headers)  # type: ignore[arg-type]
