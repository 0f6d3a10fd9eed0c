"""Sources of a first job's records: a file or a topic, with rows to look at and the records as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from streamtrain.cli.first_job.cells import UNIT_OF
from streamtrain.cli.first_job.schema_fields import Field, fields_of
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.column import Column
from streamtrain.columns.formats import mistakes, needs_schema, record_format
from streamtrain.columns.formats.parsed import Moment
from streamtrain.columns.formats.sparse_text import WEIGHT
from streamtrain.columns.paths import cell_at, place
from streamtrain.columns.rejected import Rejecting
from streamtrain.columns.row_plan import Around, RowPlan
from streamtrain.columns.rows import RowReader, document
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.file_records import FileRecords
from streamtrain.files.format_lines import is_records
from streamtrain.files.forms import form_of, jsonl, suffixes
from streamtrain.files.reading import read_rows
from streamtrain.files.source import STANDARD_INPUT, opened
from streamtrain.job import Job
from streamtrain.job.registry_settings import RegistrySettings
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import Message
from streamtrain.schemas import SchemaRegistry, bare_format, job_format
from streamtrain.topics.records import TOPIC

SAMPLE_ROWS = 20_000
PATIENCE_S = 10.0  # with a registry that does not answer
_MILLISECONDS = {name: unit for unit, name in UNIT_OF.items()}
_RAW = "jsonl"  # a file whose lines may be on a topic as they are
_GUESSED = ("json", "msgpack")  # formats whose records say what they are
Headers = Sequence[tuple[str, bytes | None]]
Record = bytes | tuple[bytes, Around]  # with what is around it where a registry's frame may be there
_VALUE = "-value"  # the end of a subject's name, behind its topic
_PROBE = """name = "init"
[topics]
records = { name = %s }
[columns]
x = {}
y = { role = "label" }
"""


class Source(Protocol):
    """Rows to look at; all there are, where `is_whole`."""

    name: str
    rows: list[Row]
    is_whole: bool
    format: str  # of the records
    topic: str  # that they are on; empty of a file's
    partitions: int  # of the topic
    weight: str  # the column that is a row's weight, where the format has one
    registry: RegistrySettings  # that knows the records' schemas
    schema: str  # of the records, as settings have it; empty where they say themselves what they are
    fields: list[Field]  # of the schema

    def records(self, job: Job, limit: int | None, rejecting: Rejecting) -> Iterator[Record]:
        """The first records as they are, or would be, on the topic; with None all of them. `rejecting` counts rows that
        no record can hold."""
        ...


class FileSource:
    """A file's rows, or those of standard input."""

    topic, partitions = "", 0
    registry, schema, fields = RegistrySettings(), "", list[Field]()

    def __init__(self, path: str) -> None:
        self.name = path
        self.rows = list(islice(read_rows(path), SAMPLE_ROWS + 1))
        self.is_whole = len(self.rows) <= SAMPLE_ROWS or path == STANDARD_INPUT
        del self.rows[SAMPLE_ROWS:]
        form = suffixes("rows").get(Path(path).suffix.lower(), "")
        self.format = form if is_records(form) else "json"
        self.weight = WEIGHT if is_records(form) else ""

    def records(self, job: Job, limit: int | None, rejecting: Rejecting) -> Iterator[Record]:
        if self.name == STANDARD_INPUT:  # it is read once
            selection = ColumnSelection(job.schema)
            plan = RowPlan(job.schema, job_format(job), bare_format(job))
            yield from plan.records([selection.row(row) for row in self.rows], rejecting)
        elif form_of(self.name, "rows") == _RAW:
            yield from islice(_lines(self.name), limit)
        else:
            yield from FileRecords(job, [self.name], limit=limit, rejecting=rejecting)


class TopicSource:
    """The newest messages of a topic."""

    weight = ""
    is_whole = True  # it never is, and goes on anyway
    registry, schema, fields = RegistrySettings(), "", list[Field]()

    def __init__(self, topic: str, bootstrap: str, settings: Sequence[str]) -> None:
        """Raises UserMistake where there is no such topic, or its format is not known."""
        self.name = self.topic = topic
        probe = Job.parse(_PROBE % json.dumps(topic), name="init", sets=list(settings), bootstrap=bootstrap)
        self.partitions = _partitions(probe, topic) or 1
        self._values = [message.value for message in _newest(probe, self.partitions) if message.value]
        if not self._values:
            raise UserMistake(
                f"--from-topic {topic}: expected messages, found none; produce some, or give a file by --from"
            )
        self.format, self.rows = _of_records(topic, self._values)

    def records(self, job: Job, limit: int | None, rejecting: Rejecting) -> Iterator[Record]:
        return islice(self._values, limit)


class SubjectSource:
    """The newest messages of the topic of a registry's subject; where there are none, the fields of its schema."""

    weight = ""
    is_whole = True

    def __init__(self, subject: str, bootstrap: str, settings: Sequence[str]) -> None:
        """Raises UserMistake where there is no such subject, or its records cannot be read by its schema."""
        self.name, self.topic = f"subject {subject}", subject.removesuffix(_VALUE)
        if not self.topic or self.topic == subject:
            raise UserMistake(
                f"--from-subject {subject}: expected TOPIC{_VALUE}, the subject in which a job looks for the schema of "
                "its records; give a file of such rows by --from"
            )
        probe = Job.parse(
            _PROBE % json.dumps(self.topic), name="init", sets=list(settings), bootstrap=bootstrap,
            environment=os.environ,
        )  # fmt: skip
        self.registry = probe.registry
        if not self.registry:
            raise UserMistake("--from-subject: expected the registry's address by --set registry.url=URL, got none")
        properties = self.registry.properties
        self.format, schema = SchemaRegistry(properties, self.topic, "json").newest_text(PATIENCE_S)
        registry = SchemaRegistry(properties, self.topic, self.format)
        if needs_schema(self.format):
            schema = registry.newest_schema(PATIENCE_S)
        self.fields, self.schema = fields_of(record_format(self.format).REGISTRY_TYPE, schema), schema
        partitions = _partitions(probe, self.topic)
        self.partitions = partitions or TOPIC.partitions
        messages = _newest(probe, partitions) if partitions else ()
        self._records = [(message.value, message.headers, message.around()) for message in messages if message.value]
        format = {"name": self.format, "frame": "registry", "schema": schema, "schemas": registry.wait}
        self.rows, broken = _typed_rows(format, self.fields, self._records)
        if self._records and not self.rows:
            raise UserMistake(f"--from-subject {subject}: the records of {self.topic} cannot be read: {broken}")

    def records(self, job: Job, limit: int | None, rejecting: Rejecting) -> Iterator[Record]:
        return islice(((value, around) for value, _, around in self._records), limit)


def _partitions(probe: Job, topic: str) -> int | None:
    """Returns how many partitions a topic has; None if the topic does not exist."""
    described = Admin(probe.kafka.bootstrap, probe.kafka_admin()).describe([topic])[topic]
    return None if described is None else described.partitions


def _newest(probe: Job, partitions: int) -> Iterator[Message]:
    return read_messages(probe, "records", until_end=True, newest=-(-SAMPLE_ROWS // partitions))


def _lines(path: str) -> Iterator[bytes]:
    """Yields each JSON object of a file: a line, or an element of its array."""
    with opened(path) as file:
        if not jsonl.is_array(file):
            yield from (line for _, line in file.lines())
            return
    for row in read_rows(path):
        yield json.dumps(row).encode()


def _of_records(topic: str, values: Sequence[bytes]) -> tuple[str, list[Row]]:
    """Returns the format in which most records are rows, and the rows."""
    found = {format: list(_rows(format, values)) for format in _GUESSED}
    best = max(_GUESSED, key=lambda format: len(found[format]))
    if found[best]:
        return best, found[best]
    first = values[0][:20]
    raise UserMistake(
        f"--from-topic {topic}: expected records in {' or '.join(_GUESSED)}, each an object, got {first!r}; for "
        "another format give a file of such rows by --from, and set records.format in the job file"
    )


def _rows(format: str, values: Iterable[bytes]) -> Iterator[Row]:
    for value in values:
        found = document(format, value)
        for row in found if isinstance(found, list) else [found]:
            if isinstance(row, dict) and not any(isinstance(cell, bytes) for cell in row.values()):
                yield row


def _typed_rows(
    format: Mapping[str, Any], fields: Sequence[Field], records: Iterable[tuple[bytes, Headers, Around]]
) -> tuple[list[Row], str | None]:
    """Rows by a schema, with the cells that a column can take; and why the last record is broken that is."""
    columns = tuple(column for each in fields if (column := _column(format, each)) is not None)
    reader = RowReader(_of_columns(columns or (("x", Column()),)), format)
    found = [reader.rows(value, headers) for value, headers, _ in records]
    rows = [row for each in found if each.broken is None for row in each.rows if isinstance(row, dict)]
    for field in fields:
        for row in rows if field.unit else ():
            _mark_time(row, field)
    return rows, next((each.broken for each in found[::-1] if each.broken is not None), None)


def _column(format: Mapping[str, Any], field: Field) -> tuple[str, Column] | None:
    """A column for a field's cells, by the name of an enum's; None where none can take them."""
    path = None if field.path == (field.name,) else place(field.path).removeprefix(".")
    number = Column(role="event_time", unit=field.unit, path=path) if field.unit else Column(path=path)
    text = Column(kind="category", buckets=2, path=path)
    texts = Column(kind="category", buckets=2, list=True, path=path)
    for column in (text, texts) if field.symbols else (number, text, texts):
        if not list(mistakes(format, _of_columns(((field.name, column),)))):
            return field.name, column
    return None


def _mark_time(row: Row, field: Field) -> None:
    """Says of a row's time what it counts."""
    above = cell_at(row, field.path[:-1])
    cell = above.get(field.path[-1]) if isinstance(above, dict) else None
    if isinstance(cell, int | float):
        above[field.path[-1]] = Moment(int(cell), _MILLISECONDS[field.unit])


def _of_columns(columns: tuple[tuple[str, Column], ...]) -> Schema:
    return Schema(columns, "mean_squared_error")
