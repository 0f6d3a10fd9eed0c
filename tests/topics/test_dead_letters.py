"""The dead letter's wire: golden headers and bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from streamtrain.errors import CheckFailed
from streamtrain.topics import dead_letters
from streamtrain.topics.dead_letters import KEY_BYTES, VALUE_BYTES, DeadLetter, DeadRange

GOLDEN = Path(__file__).parents[1] / "golden"
LETTER = DeadLetter(
    topic="flights.records",
    partition=3,
    offset=81_122,
    rows=(
        DeadRange(7, 8, "$[7].dep_delay", 'expected number, got "n/a"'),
        DeadRange(9, 10, "$[9].carrier", "expected text, got 7 für alle"),
    ),
    run=4,
    round=1200,
    key=b"UA",
    value=b"[1,2]",
)


def read(letter: DeadLetter) -> DeadLetter:
    message = dead_letters.message(letter)
    value = None if message.value is None else bytes(message.value)
    return dead_letters.decode(message.key, value, message.headers)


def test_golden_headers() -> None:
    message = dead_letters.message(replace(LETTER, until=(81_130, 2)))
    shown = {"key": "UA", "value": "[1,2]", "headers": [[name, raw.decode()] for name, raw in message.headers]}
    assert shown == json.loads((GOLDEN / "dead_letter.v1.json").read_text())
    assert (message.key, message.value) == (b"UA", b"[1,2]")


def test_round_trip() -> None:
    for letter in (LETTER, replace(LETTER, key=None, value=None, value_bytes=900_000, until=(5, 0))):
        assert read(letter) == replace(letter, value_bytes=letter.value_bytes or 5)


def test_a_long_record_goes_by_reference() -> None:
    letter = read(replace(LETTER, value=b"x" * (VALUE_BYTES + 1)))
    assert letter.value is None and letter.value_bytes == VALUE_BYTES + 1
    assert read(replace(LETTER, value=b"x" * VALUE_BYTES)).value is not None
    assert read(replace(LETTER, around_left_out=1)).value is None, "its headers have found no place"


def test_a_thousand_bad_rows_with_long_reasons_fit_a_message_and_stay_counted() -> None:
    rows = tuple(DeadRange(at * 2, at * 2 + 1, f"$[{at}]" + "x" * 2000, "é" * 3000) for at in range(1000))
    message = dead_letters.message(replace(LETTER, rows=rows, value=b"x" * VALUE_BYTES, key=b"k" * KEY_BYTES))
    size = len(message.value or b"") + len(message.key or b"") + sum(len(n) + len(raw) for n, raw in message.headers)
    assert size < 900_000
    letter = dead_letters.decode(message.key, bytes(message.value or b""), message.headers)
    assert letter.row_count == 1000 and letter.rows_left_out > 0


def test_neighbouring_rows_with_one_reason_are_one_entry() -> None:
    rows = tuple(DeadRange(at, at + 1, "$[*].x", "expected number") for at in range(100_000))
    assert read(replace(LETTER, rows=rows)).rows == (DeadRange(0, 100_000, "$[*].x", "expected number"),)


def test_lone_surrogates_and_long_keys_do_not_stop_a_letter() -> None:
    letter = read(replace(LETTER, key=b"k" * 100_000, rows=(DeadRange(0, 1, "$.\ud800", "got \udfff"),)))
    assert letter.key is None and letter.rows[0].path == "$.?"
    assert letter.value is None  # by reference, which has the key


@pytest.mark.parametrize("name", ["wire", "partition", "offset", "rows", "run", "round", "bytes"])
def test_a_missing_header_is_named(name: str) -> None:
    headers = [each for each in dead_letters.message(LETTER).headers if each[0] != f"streamtrain-{name}"]
    with pytest.raises(CheckFailed, match=f"streamtrain-{name}"):
        dead_letters.decode(None, None, headers)
