"""The predictions topic: JSON answers, never empty. The request's key and headers are echoed, ours are added.

An answer is a RowAnswer, a HeadsAnswer, or `{"error": {"path": …, "reason": …, "where": …}}`; many rows get an array of
them, and so does one in an array or in columns, but for a packed record: that of one row gets the answer alone. The
predictor's native code alone writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, cast

from streamtrain.errors import CheckFailed
from streamtrain.topics.documents import Document, as_json, headers, key_of
from streamtrain.topics.named_schemas import of_other_bytes
from streamtrain.topics.topic import RESERVED_HEADER_PREFIX, Message, Topic

HELP = "answers to the requests, with the version and digest of the snapshot that made them"
TOPIC = Topic(
    key="predictions",
    config={"cleanup.policy": "delete"},
    partitions=4,
)
VERSION_HEADER = "streamtrain-version"
DIGEST_HEADER = "streamtrain-digest"  # hex
PARTITION_HEADER = "streamtrain-partition"  # of the request
OFFSET_HEADER = "streamtrain-offset"
ERROR_HEADER = "streamtrain-error"  # why no row was answered; absent where one was
ERRORS_HEADER = "streamtrain-errors"  # else how many rows were answered with an error; absent where none was


class RowAnswer(TypedDict):
    """A model's answer for a row. It is a number, `{"prediction": 0.83}`, or the likeliest class and the probability
    of each, `{"prediction": "walk", "probabilities": {…}}`. A class is a text, a whole number or a boolean, as the
    label's `classes` are, and a text as a key of probabilities."""

    prediction: float | str
    probabilities: NotRequired[dict[str, float]]


class HeadsAnswer(TypedDict):
    """The answer of a model of several heads for a row: what each predicts, `{"prediction": {"late": 0.83, "mode":
    "walk"}, "probabilities": {"mode": {…}}}`. Probabilities are of the heads that have classes, where any has."""

    prediction: dict[str, float | str]
    probabilities: NotRequired[dict[str, dict[str, float]]]


@dataclass(frozen=True)
class RowError:
    """Why a row, or a whole request, has no prediction."""

    path: str  # into the request: "$.carrier", "$[3].carrier"; "$": the row as a whole
    reason: str  # 'expected number, got "n/a"'
    where: str  # "flights.requests[0]@12 row 3"

    def __str__(self) -> str:
        return f"{self.where} at {self.path}: {self.reason}"


@dataclass(frozen=True)
class Answer:
    """The answer to one request.

    `prediction` is of one row, or a list with one entry per row of the request; of a model of several heads
    HeadsAnswers stand there, as a type checker has to be told. A RowError stands for a row that has none. `error` says
    why no row could be answered, else it is None; a request of one row, or one that could not be read at all, has no
    `prediction` then. `headers` are the request's own.
    """

    key: bytes | None
    prediction: RowAnswer | list[RowAnswer | RowError] | None
    error: RowError | None
    errors: int  # rows with an error, or the request as a whole
    version: int | None
    digest: str | None
    partition: int | None  # of the request
    offset: int | None
    headers: tuple[tuple[str, bytes], ...] = ()


def echoed(headers: Sequence[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    """A request's headers in its answer: but those with our reserved prefix, and that of its value's schema."""
    return not_ours(of_other_bytes(headers))


def not_ours(headers: Sequence[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    """An answer's headers but those that a predictor adds."""
    return tuple(header for header in headers if not header[0].startswith(RESERVED_HEADER_PREFIX))


def request_of(headers: Sequence[tuple[str, bytes]]) -> tuple[int, int] | None:
    """Partition and offset of the request that a message answers; None where it names none. CheckFailed as decode()."""
    found = dict(headers)
    partition, offset = _number(found, PARTITION_HEADER), _number(found, OFFSET_HEADER)
    return None if partition is None or offset is None else (partition, offset)


def decode(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]) -> Answer:
    """The answer in a message; CheckFailed says what is wrong with other messages."""
    found = dict(headers)
    rows = _rows(value)
    listed = rows if isinstance(rows, list) else [rows]
    bad = [row for row in listed if isinstance(row, RowError)]
    digest = found.get(DIGEST_HEADER)
    return Answer(
        key=key,
        prediction=None if isinstance(rows, RowError) else rows,
        error=bad[0] if bad and len(bad) == len(listed) else None,
        errors=len(bad),
        version=_number(found, VERSION_HEADER),
        digest=None if digest is None else digest.decode("ascii", "replace"),
        partition=_number(found, PARTITION_HEADER),
        offset=_number(found, OFFSET_HEADER),
        headers=not_ours(headers),
    )


def _number(headers: Mapping[str, bytes], name: str) -> int | None:
    raw = headers.get(name)
    if raw is not None and not (raw.isdigit() and len(raw) <= 19):
        raise CheckFailed(f"prediction: expected a whole number in header {name}, got {raw[:80]!r}")
    return None if raw is None else int(raw)


def _rows(value: bytes | None) -> RowAnswer | RowError | list[RowAnswer | RowError]:
    try:
        parsed = json.loads(value or b"", parse_constant=_refuse)
    except (ValueError, RecursionError) as cause:
        raise CheckFailed(f"prediction: expected JSON, got {(value or b'')[:80]!r}") from cause
    return [_row(each) for each in parsed] if isinstance(parsed, list) else _row(parsed)


def _row(parsed: Any) -> RowAnswer | RowError:
    match parsed:
        case {"prediction": dict() as by_head, **rest} if by_head and rest.keys() <= {"probabilities"}:
            shares: Any = rest.get("probabilities", {})
            if all(isinstance(each, float | int | str) for each in by_head.values()) and _are_shares(by_head, shares):
                answer: HeadsAnswer = {"prediction": by_head}
                if rest:
                    answer["probabilities"] = shares
                return cast(RowAnswer, answer)
        case {"prediction": float() | int() | str() as likeliest, "probabilities": dict() as named, **rest} if not rest:
            if all(type(share) in (int, float) for share in named.values()):
                return {"prediction": likeliest, "probabilities": named}
        case {"prediction": str() as text, **rest} if not rest:
            return {"prediction": text}
        case {"prediction": float() | int() as number, **rest} if not rest and not isinstance(number, bool):
            return {"prediction": float(number)}
        case {"error": {"path": str(path), "reason": str(reason), "where": str(where)}}:
            return RowError(path, reason, where)
    raise CheckFailed(f"prediction: expected an object with a prediction or an error, got {str(parsed)[:80]}")


def _are_shares(by_head: dict[str, Any], shares: Any) -> bool:
    """Probabilities of the classes of those heads that have some."""
    if not isinstance(shares, dict) or not shares.keys() <= by_head.keys():
        return False
    return all(isinstance(named, dict) and all(type(share) in (int, float) for share in named.values())
               for named in shares.values())  # fmt: skip


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def document(message: Message) -> Document:
    """Returns what `read` shows of a message; CheckFailed as decode()."""
    answer = decode(message.key, None if message.value is None else bytes(message.value), message.headers)
    prediction: Any = answer.prediction
    if isinstance(prediction, list):
        prediction = [{"error": vars(row)} if isinstance(row, RowError) else row for row in prediction]
    found: Document = {"prediction": prediction, "version": answer.version, "digest": answer.digest}
    if answer.partition is not None:
        found |= {"request_partition": answer.partition, "request_offset": answer.offset}
    if answer.error is not None:
        found["error"] = str(answer.error)
    return {**found, **headers(message._replace(headers=answer.headers))}


def line(document: Document) -> str:
    return f"{key_of(document)}  {as_json(document['prediction'])}  (snapshot {document['version']})"
