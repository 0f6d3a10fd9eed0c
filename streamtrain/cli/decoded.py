"""A topic's messages as documents, decoded by the topic's own contract; what cannot be decoded says so and is shown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.rows import RowReader
from streamtrain.errors import StreamtrainError
from streamtrain.job import Job
from streamtrain.kafka.clients import Message as Read
from streamtrain.schemas import job_format
from streamtrain.topics import REGISTRY
from streamtrain.topics.documents import Document, as_json, cut, headers, key_of, text
from streamtrain.topics.topic import Message, topic


def decoder(job: Job, key: str) -> Callable[[Read], Document]:
    """The function that makes a document of one message of the topic `key`."""
    body = REGISTRY.get(key).document if topic(key).rows is None else _rows_of(job, key)

    def decode(read: Read) -> Document:
        pairs = tuple((name, value if value is not None else b"") for name, value in read.headers or ())
        document: Document = {
            "partition": read.partition,
            "offset": read.offset,
            "time": datetime.fromtimestamp(read.timestamp_ms / 1_000, UTC).isoformat(timespec="milliseconds"),
            "key": text(read.key),
        }
        try:
            return {**document, **body(Message(read.key, read.value, pairs))}
        except StreamtrainError as error:
            return {**document, "error": str(error), "value": cut(read.value)}

    return decode


def _rows_of(job: Job, key: str) -> Callable[[Message], Document]:
    """For a topic of rows in the job's record format."""
    schema = job.schema.for_requests() if topic(key).rows == "requests" else job.schema
    reader = RowReader(schema, job_format(job, key))

    def document(message: Message) -> Document:
        if message.value is None:
            return {"tombstone": True, **headers(message)}
        value = bytes(message.value)
        found = reader.rows(value, message.headers)
        document: Document = {"rows": to_json_rows(found.rows)} if found.rows or not found.broken else {}
        if any(isinstance(row, Unusable) for row in found.rows):
            document |= {"value": cut(value)}
        if found.broken is not None:
            document |= {"error": f"not {job.records.format}: {found.broken}", "value": cut(value)}
        return {**document, **headers(message)}

    return document


def to_json_rows(rows: list[Any]) -> list[Any]:
    """Rows of records as JSON has them."""
    return [_to_json_value(row) for row in rows]


def _to_json_value(value: Any) -> Any:
    """A value as JSON has it: bytes in base64; what cannot be shown says why."""
    if isinstance(value, dict):
        return {name: _to_json_value(cell) for name, cell in value.items()}
    if isinstance(value, list):
        return [_to_json_value(cell) for cell in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return {"unusable": value.reason} if isinstance(value, Unusable) else value


def human(key: str, document: Document) -> str:
    """One line for people."""
    place = f"{document['partition']}@{document['offset']}"
    if "error" in document:
        return f"{place}{key_of(document)}  ! {document['error']}"
    if topic(key).rows is None:
        return place + str(REGISTRY.get(key).line(document))
    rows = document.get("rows")
    return f"{place}{key_of(document)}  " + ("tombstone" if rows is None else "  ".join(map(as_json, rows)))
