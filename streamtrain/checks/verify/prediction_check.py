"""Guarantee 4 for predictions: each names a snapshot that was published, and answers a request that is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from streamtrain.checks.verify.answered import Answered, whole_number
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.checks.verify.topics import ReadTopics
from streamtrain.checks.verify.verify_report import Check
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Topic
from streamtrain.topics.predictions import (
    DIGEST_HEADER,
    ERROR_HEADER,
    ERRORS_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    VERSION_HEADER,
    echoed,
    not_ours,
)

_BATCH = 10_000  # predictions held beside the requests they answer
_TOO_LARGE = b"expected an answer that fits a message"  # how AnswerDelivery gives up what it echoes
_UNCUT_BYTES = 1_900  # a longer reason may be cut in the header
_ROWS = ({"prediction"}, {"prediction", "probabilities"}, {"error"})
_KNOWN = {VERSION_HEADER, DIGEST_HEADER, PARTITION_HEADER, OFFSET_HEADER, ERROR_HEADER, ERRORS_HEADER}


@dataclass(frozen=True)
class _Prediction:
    """A prediction with its parsed headers; `request` is (partition, offset)."""

    where: str
    message: Message
    headers: dict[str, bytes]
    version: int
    request: tuple[int, int]


@dataclass
class _Digests:
    """The digest in hex of every snapshot that manifests or round logs still name."""

    known: dict[int, bytes]
    newest: int
    older: int = 0  # predictions of versions that snapshots and round log no longer tell

    @classmethod
    def of(cls, snapshots: Snapshots, logs: Logs) -> _Digests:
        known = {log.version: log.digest for log in logs.all}
        for located in snapshots.manifests:
            known.update({entry.version: entry.digest for entry in located.manifest.kept})
            known[located.manifest.version] = located.digest
        return cls(
            {version: digest.hex().encode() for version, digest in known.items()}, snapshots.newest.manifest.version
        )


def check_predictions(topics: ReadTopics, snapshots: Snapshots, logs: Logs, fast: bool) -> Check:
    check = Check("predictions", "each names a published snapshot and its request; no request is answered twice")
    if topics.predictions is None:
        check.span = "no topic"
        return check
    digests, answered = _Digests.of(snapshots, logs), Answered(topics)
    count = 0
    every = _numbered(topics.predictions)
    while messages := list(islice(every, _BATCH)):
        read = [found for where, message in messages if (found := _read(check, where, message))]
        count += len(messages)
        for prediction in read:
            _check_version(check, digests, prediction)
            answered.take(check, prediction.where, prediction.message.timestamp_ms, prediction.request)
        if not fast and topics.requests is not None:
            _check_echoes(check, topics.requests, read)
    answered.finish(check, fast)
    if digests.older:
        text = f"{digests.older} predictions of versions that snapshots and round log no longer tell of"
        check.not_checkable.append(text)
    check.span = f"{count} predictions" + (", requests not read again (--fast)" if fast else "")
    return check


def _numbered(topic: Topic) -> Iterator[tuple[str, Message]]:
    return ((f"{topic.name}[{message.partition}]@{message.offset}", message) for message in topic.messages())


def _read(check: Check, where: str, message: Message) -> _Prediction | None:
    headers = {name: value or b"" for name, value in message.headers}
    numbers = {}
    for name in (VERSION_HEADER, PARTITION_HEADER, OFFSET_HEADER):
        number = whole_number(headers.get(name))
        if number is None:
            check.problems.append(f"{where}: expected a whole number in header {name}, got {headers.get(name)!r:.40}")
            return None
        numbers[name] = number
    ours = [name for name, _ in message.headers if name.startswith("streamtrain-")]
    check.expect(set(ours) <= _KNOWN and len(ours) == len(set(ours)), f"{where}: headers no predictor writes")
    request = numbers[PARTITION_HEADER], numbers[OFFSET_HEADER]
    problem = _wrong_body(message.value, headers, f"[{request[0]}]@{request[1]}")
    check.expect(not problem, f"{where}: {problem}")
    return _Prediction(where, message, headers, numbers[VERSION_HEADER], request)


def _wrong_body(value: bytes | None, headers: dict[str, bytes], place: str) -> str:
    """The body is an answer to the request at `place`, and the headers count its errors."""
    try:
        body = json.loads(value or b"")
    except (ValueError, RecursionError):
        return f"expected JSON, got {(value or b'')[:40]!r}"
    rows = body if isinstance(body, list) else [body]
    if not all(isinstance(row, dict) and row.keys() in _ROWS for row in rows):
        return "a row with neither a prediction nor an error, or with more"
    errors = [row["error"] for row in rows if "error" in row]
    for error in errors:
        if not isinstance(error, dict) or {"path", "reason", "where"} != error.keys():
            return f"an error that is none: {error!r:.60}"
        if not str(error["where"]).partition(" row ")[0].endswith(place):
            return f"an error of another request: {error['where']!r:.60}"
    counted = headers.get(ERRORS_HEADER)
    if (counted or b"0") != str(0 if ERROR_HEADER in headers else len(errors)).encode():
        return f"{len(errors)} rows with errors, header {ERRORS_HEADER} says {counted!r:.40}"
    if ERROR_HEADER not in headers:
        return ""
    if len(errors) != len(rows) or not errors:
        return f"answered rows, and header {ERROR_HEADER}"
    header_text = headers[ERROR_HEADER].decode("utf-8", "replace")
    reasons = [errors[0]["reason"], *(f"{error['path']}: {error['reason']}" for error in errors)]
    same = any(header_text == reason or header_text.startswith(f"{reason} (and ") for reason in reasons)
    is_cut = len(headers[ERROR_HEADER]) > _UNCUT_BYTES
    return "" if same or is_cut else f"header {ERROR_HEADER} tells of another error"


def _check_version(check: Check, digests: _Digests, prediction: _Prediction) -> None:
    version = prediction.version
    digest = digests.known.get(version)
    if digest is None:
        digests.older += 1
        was = 0 < version <= digests.newest
        check.expect(was, f"{prediction.where}: version {version} was never published")
    else:
        same = prediction.headers.get(DIGEST_HEADER) == digest
        check.expect(same, f"{prediction.where}: version {version} has another digest")


def _check_echoes(check: Check, requests: Topic, read: list[_Prediction]) -> None:
    """Key and headers are the request's, where it is still there."""
    by_request = {prediction.request: prediction for prediction in read}
    for number, partition in enumerate(requests.partitions):
        offsets = sorted(offset for at, offset in by_request if at == number)
        if not offsets:
            continue
        for request in partition.read(offsets[0], offsets[-1] + 1):
            prediction = by_request.get((number, request.offset))
            if prediction is None or prediction.message.timestamp_ms < request.timestamp_ms:
                continue  # not asked, or of a topic that was there before this one
            message, headers = prediction.message, [(name, value or b"") for name, value in request.headers]
            given_up = prediction.headers.get(ERROR_HEADER, b"").startswith(_TOO_LARGE)  # headers first, then the key
            ours = not_ours([(name, value or b"") for name, value in message.headers])
            same = message.key == request.key and ours == echoed(headers)
            less = given_up and not ours and message.key in (None, request.key)
            check.expect(same or less, f"{prediction.where}: not its request's key and headers")
