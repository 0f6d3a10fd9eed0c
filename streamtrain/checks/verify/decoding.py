"""Decodes records again as ingest did: by the format and columns in force then, not those of today's job file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamtrain import _native
from streamtrain.checks.verify.snapshots import Snapshots
from streamtrain.columns.formats import record_format
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.topics.terms import Terms, columns_digest

_SCRATCH_ROWS = 4096


class DeadRow(NamedTuple):
    """Rows [row_from, row_to) of a record that cannot be used."""

    row_from: int
    row_to: int
    path: str
    reason: str


@dataclass
class Fates:
    """What became of rows, and the newest event time among the trained; -1 where there is none."""

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
    """One decoder, with a slot to throw away."""

    def __init__(self, format_name: str, schema: Schema) -> None:
        record_format(format_name)  # UserMistake for one this build does not have
        layout = _native.SlotLayout.make(_SCRATCH_ROWS, 1, schema.block_specs())
        self._slot = np.zeros(layout.slot_bytes, np.uint8)
        self._decoder = _native.Decoder(format_name, native_plan(schema, layout))

    def count(self, values: list[bytes], fates: Fates) -> None:
        """Adds every row of these records."""
        while values:
            done, _, *rest = self._decoder.decode_many(values, self._slot, 0, _SCRATCH_ROWS)
            fates.add(*rest)
            if done < len(values):  # the slot was full within this one
                self._rest(fates)
                done += 1
            values = values[done:]

    def count_from(self, value: bytes, from_row: int, fates: Fates) -> int:
        """Adds a record's rows from `from_row` on; gives how many rows the record has."""
        self._decoder.begin(value, from_row)
        self._rest(fates)
        return self._decoder.row

    def _rest(self, fates: Fates) -> None:
        done = False
        while not done:
            done, _, *rest = self._decoder.next(self._slot, 0, _SCRATCH_ROWS)[:6]
            fates.add(*rest)

    def newest_event_ms(self, value: bytes, from_row: int, trained: int) -> int:
        """The newest event time of a record's first `trained` rows that can be trained, from `from_row` on."""
        self._decoder.begin(value, from_row)
        newest, done = -1, False
        while trained > 0 and not done:
            done, used, _, _, _, event_ms = self._decoder.next(self._slot, 0, min(trained, _SCRATCH_ROWS))[:6]
            newest, trained = max(newest, event_ms), trained - used
        return newest

    def dead_rows(self, value: bytes, from_row: int = 0) -> Iterator[DeadRow]:
        """A record's dead rows from `from_row` on, with where and why."""
        self._decoder.begin(value, from_row)
        done = False
        while not done:
            filled = self._decoder.next(self._slot, 0, _SCRATCH_ROWS)
            done = filled[0]
            yield from (DeadRow(*dead[:4]) for dead in filled[6])


class Decoders:
    """A decoder for each format and set of columns there ever was; None where no manifest holds those columns."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._schemas = {columns_digest(each.manifest.schema): each.manifest.schema for each in snapshots.manifests}
        self._made: dict[tuple[str, bytes], RecordDecoder | None] = {}

    def of(self, terms: Terms) -> RecordDecoder | None:
        key = str(terms.format["name"]), terms.columns_digest
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, format_name: str, digest: bytes) -> RecordDecoder | None:
        schema = self._schemas.get(digest)
        try:
            return None if schema is None else RecordDecoder(format_name, Schema.from_dict(dict(schema)))
        except (UserMistake, StreamtrainError):
            return None  # told where manifests are checked
