"""The key of a record: read by the producer alone, passed over by decoders."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.kinds import category
from streamtrain.columns.kinds.kind import Kind

HELP = "the record's key, for the producer"


class Options(category.Options):
    """A key may be called a category too: what it says of buckets is passed over."""


class Key(Kind[Options]):
    role = "key"
    in_requests = "ignored"
    decoded = False
    beside = None
    options = Options

    def missing_problem(self, column: Options) -> str | None:
        return "a key column is only read by the producer; remove it"

    def takes_text(self, column: Options) -> bool:
        return True

    def plain(self, column: Options, value: Any) -> Any:
        return str(value)


KIND = Key()
