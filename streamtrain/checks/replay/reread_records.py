"""The records that ranges of a round log touch, read again."""

from __future__ import annotations

from typing import Self

from streamtrain.columns.schema import Schema
from streamtrain.record_sources.source_kind import Given, RecordReader, source_of
from streamtrain.topics.terms import Terms


class Readers:
    """A reader for each record source that a lineage's rounds have read, and each format."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._readers: dict[tuple[str, str], RecordReader] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def of(self, terms: Terms, schema: Schema) -> RecordReader:
        """Returns the reader of the record source in these round settings.

        Raises RecordsGone if that source no longer exists.
        """
        key = terms.topic_id, repr(sorted(terms.format.items()))
        if key not in self._readers:
            self._readers[key] = source_of(terms.topic_id).reader(terms, schema, self._given)
        return self._readers[key]
