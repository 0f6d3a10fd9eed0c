"""Decodes records again as ingest did: by the format and columns in force then, not those of today's job file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamtrain import _native
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.columns import formats
from streamtrain.columns.schema import Schema
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import SourceKind, source_of
from streamtrain.schemas import Answer, decoded_by, is_framed, lookup_in
from streamtrain.topics.dead_letters import DeadRange
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms, columns_digest

_SCRATCH_ROWS = 4096
_CUT = "…"  # ends a path or a reason that was cut to fit


@dataclass
class Fates:
    """The number of rows per outcome, and the newest event time of the trained rows in ms; -1 if there is none."""

    trained: int = 0
    dead: int = 0
    filtered: int = 0
    newest_event_ms: int = -1

    @property
    def rows(self) -> int:
        return self.trained + self.dead + self.filtered

    def add(self, trained: int, dead: int, filtered: int, newest_event_ms: int) -> None:
        self.trained += trained
        self.dead += dead
        self.filtered += filtered
        self.newest_event_ms = max(self.newest_event_ms, newest_event_ms)


class RecordDecoder:
    """Tells what becomes of rows; keeps none."""

    def __init__(self, format: Mapping[str, Any], schema: Schema, schemas: Mapping[str, Answer]) -> None:
        known = decoded_by(formats.checked(format), lookup_in(schemas))  # UserMistake for one this build does not have
        layout = _native.SlotLayout.make(_SCRATCH_ROWS, 1, schema.block_specs())
        self._filler = _native.BatchFiller(known, schema.native_plan(layout))
        self.reads_around = schema.reads_around
        self._is_framed = is_framed(format)

    def count(self, messages: list[Message], fates: Fates) -> None:
        """Adds every row of these records."""
        fates.add(*_counts(self._count(messages)))

    def count_from(self, message: Message, from_row: int, fates: Fates) -> int:
        """Adds a record's rows from `from_row` on; gives how many rows the record has."""
        fates.add(*_counts(self._count([message], from_row)))
        return self._filler.record_rows

    def newest_event_ms(self, message: Message, from_row: int, trained: int) -> int:
        """The newest event time of a record's first `trained` rows that can be trained, from `from_row` on."""
        return self._count([message], from_row, most=trained).newest_event_time_ms

    def otherwise(self, message: Message, expected: DeadRange) -> Iterator[str]:
        """Yields how a dead letter differs from the decoder on a record's rows: which rows, where and why."""
        dead_rows = self._count([message], expected.row_from, most=1).dead_rows
        found = DeadRange(*dead_rows[0][:4]) if dead_rows else None
        here = f"rows {expected.row_from} to {expected.row_to}"
        if found is None or found.row_from != expected.row_from or found.row_to < expected.row_to:
            yield f"{here} of its record are not dead"
        elif not (_same(expected.path, found.path) and _same(expected.reason, found.reason)):
            yield f"{here} are dead for another reason: {found.path}: {found.reason}"

    def _count(self, messages: list[Message], from_row: int = 0, most: int | None = None) -> _native.RowTally:
        reads_around = self.reads_around or (self._is_framed and any(message.headers for message in messages))
        values = [message.value for message in messages if message.value is not None]
        around = [message.around() for message in messages if message.value is not None] if reads_around else None
        return self._filler.count(values, from_row, most, around)


def _same(expected: str, found: str) -> bool:
    return expected == found or (expected.endswith(_CUT) and found.startswith(expected[: -len(_CUT)]))


def _counts(tally: _native.RowTally) -> tuple[int, int, int, int]:
    return tally.trained, tally.dead, tally.filtered, tally.newest_event_time_ms


class Decoders:
    """A decoder for each format, columns and schemas there ever were; None where no manifest holds those columns."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._schemas = {columns_digest(each.manifest.schema): each.manifest.schema for each in snapshots.manifests}
        # by format, digest of the columns, the schemas that a log tells, and what is read
        self._decoders: dict[tuple[str, bytes, bytes, SourceKind], RecordDecoder | None] = {}

    def of(self, log: RoundLog, terms: Terms) -> RecordDecoder | None:
        """Returns the decoder of a log's records under these round settings."""
        kind = source_of(terms.topic_id)
        key = repr(sorted(terms.format.items())), terms.columns_digest, log.schemas.tobytes(), kind
        if key not in self._decoders:
            self._decoders[key] = self._make(terms, log.named_schemas)
        return self._decoders[key]

    def _make(self, terms: Terms, schemas: Mapping[str, Answer]) -> RecordDecoder | None:
        known = self._schemas.get(terms.columns_digest)
        try:
            if known is None:
                return None
            schema, format = source_of(terms.topic_id).decoded_as(Schema.from_dict(dict(known)), terms.format)
            return RecordDecoder(format, schema, schemas)
        except (UserMistake, StreamtrainError):
            return None  # told where manifests are checked
