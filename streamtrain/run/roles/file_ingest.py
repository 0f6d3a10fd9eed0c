"""Ingest of files: reads one behind the other from where the lineage is, row for row into slots.

The one reader of the files; publishes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from streamtrain import _native, exits
from streamtrain.background import in_background
from streamtrain.columns.rejected import Rejected
from streamtrain.compute.state import attach
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.files.placed import placed_records
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.record_sources.file_source import files_from
from streamtrain.run.ready import round_cutter, wait_ready
from streamtrain.schemas import bare_format

log = get_logger(__name__)
HELP = "reads files and turns their rows into batches"

_RUN_S = 0.5  # one native call; how late a file's mistake may be seen
_PUT_S = 0.5
_REPORTED_ROWS = 5


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    job: dict[str, Any]
    files: list[dict[str, Any]]
    round_interval_s: float | None
    batch_growth: int | None
    min_batch_rows: int
    threads: int


def run(config: Config) -> int:
    arena = attach(config.arena)
    job = Job.from_effective(config.job)
    plan = job.schema.without_message().native_plan(arena.slot_layout)
    if not wait_ready(arena):
        return exits.RUN_OVER
    cutter = round_cutter(arena, config.round_interval_s, config.batch_growth, config.min_batch_rows)
    source = _native.MemorySource()
    ingest = _native.Ingest(cutter, source, bare_format(job), plan)
    ingest.start()
    feed = _Feed(job, files_from(config.files), source)
    fed = in_background(feed.run, dict(source.starts), name="files")
    while (status := ingest.run(_RUN_S)) == _native.IngestStatus.WORKING:
        if fed.done():
            fed.result()
    feed.leave()
    return 0 if status == _native.IngestStatus.ENDED else exits.RUN_OVER


class _Feed:
    """Puts the records of files into a source, in a thread of its own."""

    def __init__(self, job: Job, files: Sequence[FoundFile], source: _native.MemorySource) -> None:
        self._schema, self._format = job.schema, bare_format(job)
        self._files, self._source = files, source
        self._left = Event()
        self._rejected = 0

    def leave(self) -> None:
        self._left.set()
        self._source.close()

    def run(self, starts: Mapping[int, int]) -> None:
        """From these rows of the files to their ends. UserMistake, naming the file, for what cannot be read."""
        for partition, file in enumerate(self._files):
            if starts.get(partition, 0) < file.rows:
                file.check_unchanged()
                self._put(partition, file, starts.get(partition, 0))
                file.check_unchanged()
        if self._rejected:  # before the end, at which the process ends
            log.warning(f"dead letters, as no record can hold them: {self._rejected:,} rows")
        self._source.end()

    def _report(self, row: Rejected) -> None:
        self._rejected += 1
        if self._rejected <= _REPORTED_ROWS:
            log.warning(f"{row}; the row is a dead letter")

    def _put(self, partition: int, file: FoundFile, begin: int) -> None:
        end = begin
        for row, record in placed_records(file.path, self._schema, self._format, begin, self._report):
            end = row + record.rows
            while not self._left.is_set() and not self._source.put(record.value, _PUT_S, partition, row, record.rows):
                pass
            if self._left.is_set():
                return
        if end != file.rows:
            raise UserMistake(f"{file.path}: expected {file.rows:,} rows, which were counted before, got {end:,}")
