"""The wires of predictions, a row's error in its place and reserved headers ours, and of dead letters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_outputs import echo_scorer

from streamtrain._native import RequestScorer
from streamtrain.columns.schema import Schema
from streamtrain.errors import CheckFailed
from streamtrain.topics import dead_letters, predictions
from streamtrain.topics.dead_letters import KEY_BYTES, VALUE_BYTES, DeadLetter, DeadRange
from streamtrain.topics.predictions import RowError
from tests.oracles.records import oracle

GOLDEN = Path(__file__).parents[1] / "golden" / "predictions.v1.jsonl"
DIGEST = "ab" * 32
TWO: dict[str, Any] = {"a": {}, "b": {"missing": "skip"}}
ONE: dict[str, Any] = {"a": {}}


def answer(scorer: RequestScorer, request: Any) -> tuple[Any, str, int, int]:
    """Parsed body, header, rows, errors of one request, which stands at offset 0 of asked[0]."""
    raw = request if isinstance(request, bytes | None) else json.dumps(request).encode()
    ((body, error, rows, errors),) = scorer.score("asked", [raw])
    return json.loads(body), error, rows, errors


def error(path: str, reason: str, row: int | None = None) -> dict[str, Any]:
    where = "asked[0]@0" + ("" if row is None else f" row {row}")
    return {"error": {"path": path, "reason": reason, "where": where}}


def test_golden_answers() -> None:
    number, named = echo_scorer(ONE, []), echo_scorer(TWO, ["walk", 'say "hi"\n\x01é\\'])
    lines = [
        body
        for scorer, requests in (
            (number, [b"[0.83]", b"[[0.1],[1e-9],[16777216],[1e16],[-0.0],[1e-45]]", b"[]"]),
            (number, [b'{"a":"n/a"}', b'[[1],[null],[2],{"a":[]},7,[3],[', b"{", b"", None]),
            (named, [b"[0.75,0.25]", b'[[0.1,0.9],{"a":1},[0.5,0.5]]', b'{"a":[1,"\\"\\u00e9"],"b":[0,0]}']),
            (echo_scorer(TWO, []), [b"[0.25,0.75]"]),
        )
        for body, *_ in scorer.score("asked", requests)
    ]
    assert b"\n".join(lines) + b"\n" == GOLDEN.read_bytes()


def test_every_golden_answer_is_read_back_as_json_has_it() -> None:
    for line in GOLDEN.read_bytes().splitlines():
        got = predictions.decode(None, line, ())
        listed = json.loads(line)
        answers = listed if isinstance(listed, list) else [listed]
        bad = [RowError(**row["error"]) for row in answers if "error" in row]
        assert got.errors == len(bad) and got.error == (bad[0] if bad and len(bad) == len(answers) else None)
        rows = [RowError(**row["error"]) if "error" in row else row for row in answers]
        assert got.prediction == (rows if isinstance(listed, list) else None if bad else rows[0])


def test_numbers_give_the_float32_back() -> None:
    values = np.random.default_rng(1).random((200, 1), np.float32)
    body, *_ = answer(echo_scorer(ONE, []), values.tolist())
    assert np.array_equal(np.array([row["prediction"] for row in body], np.float32), values[:, 0])


def test_one_bad_row_among_many_is_an_error_in_its_place() -> None:
    rows: list[Any] = [[at, -at] for at in range(256)]
    rows[7], rows[100], rows[101], rows[255] = ["x", 1], [1, None], [2, None], {"b": 1}
    body, header, answered, errors = answer(echo_scorer(TWO, ["no", "yes"]), rows)
    assert (header, answered, errors, len(body)) == ("", 252, 4, 256)
    assert body[7] == error("$[7].a", 'expected number, got "x"', 7)
    assert [body[at]["error"]["path"] for at in (100, 101)] == ["$[100].b", "$[101].b"]
    assert body[255] == error("$[255].a", "expected number, got nothing (missing)", 255)
    for at in set(range(256)) - {7, 100, 101, 255}:
        assert body[at]["probabilities"] == {"no": at, "yes": -at}


def test_a_row_that_a_plan_leaves_out_is_an_error_in_its_place() -> None:
    scorer = echo_scorer(TWO, [], requests=False)
    rows: list[Any] = [{"a": at, "b": 2} for at in range(12)]
    rows[0], rows[4], rows[5], rows[9] = {"a": 1}, {"a": 1}, {"a": "x"}, {"a": 1, "b": None}
    body, header, answered, errors = answer(scorer, rows)
    left_out = 'expected a value, got nothing (missing = "skip" leaves such rows out)'
    assert (header, answered, errors) == ("", 8, 4)
    assert [body[at] for at in (0, 4, 9)] == [error(f"$[{at}].b", left_out, at) for at in (0, 4, 9)]
    assert body[5] == error("$[5].a", 'expected number, got "x"', 5)
    assert [row["probabilities"]["0"] for row in body if "error" not in row] == [1, 2, 3, 6, 7, 8, 10, 11]


def test_rows_in_a_row_with_one_reason_have_a_path_each() -> None:
    body, header, *_ = answer(echo_scorer(ONE, []), [["x"], ["x"], ["x"], [1]])
    assert [row["error"]["path"] for row in body[:3]] == ["$[0].a", "$[1].a", "$[2].a"] and header == ""
    body, *_ = answer(echo_scorer(ONE, []), {"a": ["x", "x", 1]})
    assert [row.get("error", {}).get("path") for row in body] == ["$.a[0]", "$.a[1]", None]
    assert body[1]["error"]["where"] == "asked[0]@0 row 1"
    body, header, answered, errors = answer(echo_scorer(ONE, []), [["x"], [None], ["x"]])
    assert [row["error"]["path"] for row in body] == ["$[0].a", "$[1].a", "$[2].a"]
    assert (answered, errors) == (0, 3)
    assert header == '$[0].a: expected number, got "x" (and 2 more bad rows)', "why no row was answered"
    assert answer(echo_scorer(ONE, []), [])[1:] == ("", 0, 0)


def test_packed_rows_have_their_errors_too() -> None:
    schema = Schema.from_columns({**TWO, "y": {"role": "label"}}, "mean_squared_error").for_requests()
    scorer = echo_scorer(TWO, [], "packed")
    columns = {"a": np.array([1, np.nan, np.inf, 4]), "b": np.ma.MaskedArray([1, 2, 3, 4], [0, 0, 0, 1])}
    body, header, answered, errors = answer(scorer, oracle("packed").encode(schema, columns))
    assert (header, answered, errors) == ("", 1, 3)
    assert [row.get("error", {}).get("path") for row in body] == [None, "$.a[1]", "$.a[2]", "$.b[3]"]


def test_the_rest_that_cannot_be_read_is_one_last_error() -> None:
    body, header, answered, errors = answer(echo_scorer(ONE, []), b"[[1],[2],[")
    assert body[:2] == [{"prediction": 1.0}, {"prediction": 2.0}] and len(body) == 3
    assert body[2]["error"]["path"] == "$[2]" and body[2]["error"]["where"] == "asked[0]@0 row 2"
    assert (header, answered, errors) == ("", 2, 1)


@pytest.mark.parametrize("request_bytes", [None, b"", b"{", b'"x', b"[", b'{"a":[1,2],"b":[1]}', b"\0\0\0\0\7x"])
def test_a_request_that_cannot_be_read_at_all_is_answered_with_an_error_alone(request_bytes: bytes | None) -> None:
    scorer = echo_scorer(TWO, [])
    answer(scorer, [[1, 2], [3, 4]])  # of many rows: the decoder forgets that
    body, header, answered, errors = answer(scorer, request_bytes)
    assert body.keys() == {"error"} and body["error"]["where"] == "asked[0]@0"
    assert header == f"{body['error']['path']}: {body['error']['reason']}" and (answered, errors) == (0, 1)


def test_a_prediction_that_is_not_finite_is_an_error_in_its_place() -> None:
    scorer = echo_scorer(ONE, [], overflow=100)
    body, header, answered, errors = answer(scorer, [[1], [500], [2]])
    not_finite = "expected a finite prediction, got NaN or infinity"
    assert body == [{"prediction": 1.0}, error("$", not_finite, 1), {"prediction": 2.0}]
    assert (header, answered, errors) == ("", 2, 1)
    assert answer(scorer, [500]) == (error("$", not_finite), f"$: {not_finite}", 0, 1)


def test_an_answer_that_would_be_too_large_says_so() -> None:
    for rows in ([[1.5]] * 48_000, [["x"]] * 20_000, [[1.5]] * 47_364 + [["x"]]):
        body, header, answered, errors = answer(echo_scorer(ONE, []), rows)
        assert body["error"]["path"] == "$" and "send fewer rows at once" in body["error"]["reason"]
        assert "send fewer rows at once" in header and (answered, errors) == (0, 1)
    body, header, answered, errors = answer(echo_scorer(ONE, []), [[1.5]] * 47_365)
    assert (header, answered, errors) == ("", 47_365, 0)


def test_a_request_that_fails_leaves_the_others_of_its_batch_alone() -> None:
    many = json.dumps([[1], ["x"], [2]]).encode()
    got = echo_scorer(ONE, []).score("asked", [b"[5]", many, None, b"{", b"[6]", many])
    assert [(header, answered, errors) for _, header, answered, errors in got] == [
        ("", 1, 0), ("", 2, 1), ("$: expected a row, got a record without a value", 0, 1),
        ("$: expected a key, got the record's end at byte 1", 0, 1), ("", 1, 0), ("", 2, 1),
    ]  # fmt: skip
    assert [json.loads(got[at][0])["prediction"] for at in (0, 4)] == [5, 6]
    assert json.loads(got[5][0])[1]["error"]["where"] == "asked[0]@5 row 1"


def test_reading_an_answer() -> None:
    headers = [
        ("trace", b"\x00\xff"), ("streamtrain-version", b"12"), ("streamtrain-digest", DIGEST.encode()),
        ("streamtrain-partition", b"3"), ("streamtrain-offset", b"81122"), ("streamtrain-errors", b"1"),
        ("trace", b"2"),
    ]  # fmt: skip
    bad = error("$[1].a", "expected number", 1)
    got = predictions.decode(b"k", json.dumps([{"prediction": 0.5}, bad]).encode(), headers)
    assert got.prediction == [{"prediction": 0.5}, RowError("$[1].a", "expected number", "asked[0]@0 row 1")]
    assert (got.key, got.version, got.digest, got.partition, got.offset) == (b"k", 12, DIGEST, 3, 81122)
    assert (got.error, got.errors, got.headers) == (None, 1, (("trace", b"\x00\xff"), ("trace", b"2")))
    alone = predictions.decode(None, json.dumps(bad).encode(), ())
    assert (alone.prediction, alone.errors, alone.partition) == (None, 1, None)
    assert str(alone.error) == "asked[0]@0 row 1 at $[1].a: expected number"


HEADLESS = (  # what no predictor says of several heads
    b'{"prediction":{}}', b'{"prediction":{"late":[1]}}', b'{"prediction":{"late":{"a":1}}}',
    b'{"prediction":{"late":1},"other":1}', b'{"prediction":{"late":1},"probabilities":{"mode":{"a":1}}}',
    b'{"prediction":{"late":1},"probabilities":{"late":1}}', b'{"prediction":{"late":1},"probabilities":1}',
    b'{"prediction":{"late":"a"},"probabilities":{"late":{"a":"b"}}}',
)  # fmt: skip


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b"{", ()), (None, ()), (b"", ()), (b"[" * 10**5, ()), (b"1", ()), (b"{}", ()), (b'{"prediction":null}', ()),
        (b'{"prediction":NaN}', ()), (b'{"prediction":1,"other":2}', ()), (b'{"error":"text"}', ()),
        (b'[{"prediction":1},3]', ()), (b'{"prediction":"a","probabilities":{"a":"1"}}', ()),
        *[(b'{"prediction":1}', [(f"streamtrain-{name}", b"x")]) for name in ("version", "partition", "offset")],
        *[(body, ()) for body in HEADLESS],
    ],
)  # fmt: skip
def test_other_messages_are_an_error(value: bytes | None, headers: object) -> None:
    with pytest.raises(CheckFailed, match="prediction"):
        predictions.decode(None, value, headers)  # type: ignore[arg-type]


HEADS: list[tuple[str, int, list[str]]] = [("late", 1, []), ('"mode"', 3, ["walk", "sit"]), ("delay", 1, [])]
FIVE: dict[str, Any] = {name: {} for name in "abcde"}


def test_an_answer_of_several_heads_holds_what_each_says() -> None:
    scorer = echo_scorer(FIVE, [], heads=HEADS)
    (body, *_), (bad, *_) = scorer.score("asked", [b"[[0.83,0.25,0.5,0.25,12],[0,1,0,0,-1.5]]", b"[1,2,3,4,1e39]"])
    expected = (b'[{"prediction":{"late":0.83,"\\"mode\\"":"sit","delay":12.0},'
            b'"probabilities":{"\\"mode\\"":{"walk":0.25,"sit":0.5,"2":0.25}}},'
            b'{"prediction":{"late":0.0,"\\"mode\\"":"walk","delay":-1.5},'
            b'"probabilities":{"\\"mode\\"":{"walk":1.0,"sit":0.0,"2":0.0}}}]')  # fmt: skip
    assert body == expected
    assert predictions.decode(None, body, ()).prediction == json.loads(body)
    assert list(json.loads(bad)) == ["error"]
    ((numbers, *_),) = echo_scorer(TWO, [], heads=[("late", 1, []), ("x.y", 1, [])]).score("asked", [b"[1,2]"])
    assert numbers == b'{"prediction":{"late":1.0,"x.y":2.0}}'
    assert predictions.decode(None, numbers, ()).prediction == json.loads(numbers)


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
    document = {"key": "UA", "value": "[1,2]", "headers": [[name, raw.decode()] for name, raw in message.headers]}
    assert document == json.loads(GOLDEN.with_name("dead_letter.v1.json").read_text())
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
