"""Sources of a first job's records: a file or a topic, with rows to look at and the records as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.formats import parse
from streamtrain.columns.formats.parsed import Pairs, contains_unusable
from streamtrain.columns.formats.sparse_text import WEIGHT
from streamtrain.columns.row_plan import RowPlan
from streamtrain.errors import UserMistake
from streamtrain.files.format_lines import is_records
from streamtrain.files.forms import form_of, jsonl, suffixes
from streamtrain.files.reading import read_rows
from streamtrain.files.records import FileRecords
from streamtrain.files.source import STANDARD_INPUT, opened
from streamtrain.files.wanted import Row, Wanted
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.schemas import bare_format, job_format

SAMPLE_ROWS = 20_000
_RAW = "jsonl"  # a file whose lines may be on a topic as they are
_GUESSED = ("json", "msgpack")  # formats whose records say what they are
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

    def records(self, job: Job, limit: int | None) -> Iterator[bytes]:
        """The first records as they are, or would be, on the topic; with None all of them."""
        ...


class FileSource:
    """A file's rows, or those of standard input."""

    topic, partitions = "", 0

    def __init__(self, path: str) -> None:
        self.name = path
        self.rows = list(islice(read_rows(path), SAMPLE_ROWS + 1))
        self.is_whole = len(self.rows) <= SAMPLE_ROWS or path == STANDARD_INPUT
        del self.rows[SAMPLE_ROWS:]
        form = suffixes("rows").get(Path(path).suffix.lower(), "")
        self.format = form if is_records(form) else "json"
        self.weight = WEIGHT if is_records(form) else ""

    def records(self, job: Job, limit: int | None) -> Iterator[bytes]:
        if self.name == STANDARD_INPUT:  # it is read once
            wanted = Wanted(job.schema)
            plan = RowPlan(job.schema, job_format(job), bare_format(job))
            yield from plan.encoded([wanted.row(row) for row in self.rows])
        elif form_of(self.name, "rows") == _RAW:
            yield from islice(_lines(self.name), limit)
        else:
            yield from FileRecords(job, [self.name], limit=limit)


class TopicSource:
    """The newest messages of a topic."""

    weight = ""
    is_whole = True  # it never is, and goes on anyway

    def __init__(self, topic: str, bootstrap: str, settings: Sequence[str]) -> None:
        """Raises UserMistake where there is no such topic, or its format is not known."""
        self.name = self.topic = topic
        probe = Job.parse(_PROBE % json.dumps(topic), name="init", sets=list(settings), bootstrap=bootstrap)
        described = Admin(probe.kafka.bootstrap, probe.kafka_admin()).describe([topic])[topic]
        self.partitions = described.partitions if described is not None else 1
        messages = read_messages(probe, "records", until_end=True, newest=-(-SAMPLE_ROWS // self.partitions))
        self._values = [message.value for message in messages if message.value]
        if not self._values:
            raise UserMistake(
                f"--from-topic {topic}: expected messages, found none; produce some, or give a file by --from"
            )
        self.format, self.rows = _of_records(topic, self._values)

    def records(self, job: Job, limit: int | None) -> Iterator[bytes]:
        return islice(self._values, limit)


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
        parsed = parse(format, value)
        if parsed.broken is None:
            yield from (_plain(row) for row in parsed.rows if isinstance(row, Pairs) and not contains_unusable(row))


def _plain(value: Any) -> Any:
    if isinstance(value, Pairs):
        return {str(key): _plain(inner) for key, inner in value}
    return [_plain(each) for each in value] if isinstance(value, list) else value
