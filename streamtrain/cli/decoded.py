"""A topic's messages as documents, decoded by the topic's own contract; what cannot be decoded says so and is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from streamtrain.columns.formats._parsed import Unusable
from streamtrain.columns.rows import record_rows
from streamtrain.columns.schema import Schema
from streamtrain.errors import StreamtrainError
from streamtrain.job import Job
from streamtrain.kafka.consumer import Message
from streamtrain.topics import dead_letters, predictions, rounds
from streamtrain.topics.terms import Terms

Document = dict[str, Any]
MOST_SHOWN_BYTES = 200  # of a value nobody could decode


def decoder(job: Job, key: str) -> Callable[[Message], Document]:
    """The function that makes a document of one message of the topic `key`."""
    bodies: dict[str, Callable[[Message], Document]] = {
        "records": lambda message: _rows(job, job.schema, message),
        "requests": lambda message: _rows(job, job.schema.for_requests(), message),
        "predictions": _prediction,
        "dead-letters": _dead_letter,
        "rounds": _round_log,
    }
    body = bodies[key]

    def decode(message: Message) -> Document:
        document: Document = {
            "partition": message.partition,
            "offset": message.offset,
            "time": datetime.fromtimestamp(message.timestamp_ms / 1_000, UTC).isoformat(timespec="milliseconds"),
            "key": _text(message.key),
        }
        try:
            return {**document, **body(message)}
        except StreamtrainError as error:
            return {**document, "error": str(error), "value": _cut(message.value)}

    return decode


def _text(raw: bytes | None) -> Any:
    """A text where the bytes are one."""
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def _cut(raw: bytes | None) -> Any:
    if raw is None or len(raw) <= MOST_SHOWN_BYTES:
        return _text(raw)
    return {
        "bytes": len(raw),
        "begins": _text(raw[:MOST_SHOWN_BYTES].decode("utf-8", "ignore").encode()) or raw[:16].hex(),
    }


def _headers(message: Message) -> Document:
    return {"headers": {name: _text(value) for name, value in message.headers}} if message.headers else {}


def _rows(job: Job, schema: Schema, message: Message) -> Document:
    if message.value is None:
        return {"tombstone": True, **_headers(message)}
    found = record_rows(schema, job.records.format, message.value)
    document: Document = {"rows": shown_rows(found.rows)} if found.rows or not found.broken else {}
    if found.broken is not None:
        document |= {"error": f"not {job.records.format}: {found.broken}", "value": _cut(message.value)}
    return {**document, **_headers(message)}


def shown_rows(rows: list[Any]) -> list[Any]:
    """Rows of `record_rows` as JSON has them."""
    return [_shown(row) for row in rows]


def _shown(value: Any) -> Any:
    """A value as JSON has it; what no column can take says why."""
    if isinstance(value, dict):
        return {name: _shown(cell) for name, cell in value.items()}
    if isinstance(value, list):
        return [_shown(cell) for cell in value]
    return {"unusable": value.reason} if isinstance(value, Unusable) else value


def _prediction(message: Message) -> Document:
    answer = predictions.decode(message.key, message.value, _pairs(message))
    headers = {name: _text(value) for name, value in answer.headers}
    prediction: Any = answer.prediction
    if isinstance(prediction, list):
        prediction = [{"error": vars(row)} if isinstance(row, predictions.RowError) else row for row in prediction]
    document: Document = {"prediction": prediction, "version": answer.version, "digest": answer.digest}
    if answer.partition is not None:
        document |= {"request_partition": answer.partition, "request_offset": answer.offset}
    if answer.error is not None:
        document["error"] = str(answer.error)
    return {**document, **({"headers": headers} if headers else {})}


def _dead_letter(message: Message) -> Document:
    letter = dead_letters.decode(message.key, message.value, _pairs(message))
    return {
        "topic": letter.topic,
        "record_partition": letter.partition,
        "record_offset": letter.offset,
        "until": letter.until,
        "run": letter.run,
        "round": letter.round,
        "rows": [
            {"from": part.row_from, "to": part.row_to, "path": part.path, "reason": part.reason} for part in letter.rows
        ],
        "rows_left_out": letter.rows_left_out,
        "value_bytes": letter.value_bytes,
        "value": _cut(letter.value),
    }


def _round_log(message: Message) -> Document:
    assert message.value is not None
    log = rounds.decode(message.value)
    return {
        "version": log.version,
        "digest": log.digest.hex(),
        "lineage": log.lineage,
        "run": log.run.number,
        "part": log.part,
        "parts": log.parts,
        "created_ms": log.created_ms,
        "newest_event_ms": log.newest_event_ms,
        "worker_deaths": log.worker_deaths,
        "metrics": dict(log.metrics),
        "terms": [_terms(terms) for terms in log.terms],
        "rows_trained": log.rows_trained,
        "rounds": _structs(log.rounds),
        "slots": _structs(log.slots),
        "ranges": _structs(log.ranges),
    }


def _terms(terms: Terms) -> Document:
    digests = {"columns_digest": terms.columns_digest.hex(), "model_digest": terms.model_digest.hex()}
    return {**asdict(terms), **digests}


def _structs(structs: Any) -> list[Document]:
    names = [name for name in structs.dtype.names if name != "reserved"]
    return [{name: struct[name].item() for name in names} for struct in structs]


def _pairs(message: Message) -> list[tuple[str, bytes]]:
    return [(name, value if value is not None else b"") for name, value in message.headers]


def human(key: str, document: Document) -> str:
    """One line for people."""
    place = f"{document['partition']}@{document['offset']}"
    name = "" if document["key"] is None else f" {document['key']}"
    if "error" in document:
        return f"{place}{name}  ! {document['error']}"
    if key in ("records", "requests"):
        rows = document.get("rows")
        return f"{place}{name}  " + ("tombstone" if rows is None else "  ".join(map(_json, rows)))
    if key == "predictions":
        return f"{place}{name}  {_json(document['prediction'])}  (snapshot {document['version']})"
    if key == "dead-letters":
        reasons = "; ".join(
            f"rows {row['from']}..{row['to'] - 1} {row['path']}: {row['reason']}" for row in document["rows"]
        )
        return f"{place}  {document['topic']}[{document['record_partition']}]@{document['record_offset']}  {reasons}"
    return (
        f"{place}  snapshot {document['version']}: {len(document['rounds'])} rounds, {len(document['slots'])} batches, "
        f"{document['rows_trained']:,} rows trained"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
