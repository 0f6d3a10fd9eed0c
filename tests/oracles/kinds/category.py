"""A text, an integer or a boolean: its hash's bucket; with a vocabulary the hash itself; of a list one for each."""

from __future__ import annotations

from typing import Any

from streamtrain import _native
from streamtrain.columns.column import Column
from streamtrain.columns.formats.parsed import TextHash
from streamtrain.columns.kinds.category import hash_seed
from tests.oracles.kinds import Cell, Oracle, Wrong
from tests.oracles.kinds._numbers import one_text, text_of


class Category(Oracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        return _put(column, hash_of(name, column, self.read(name, column, loss, cell)))

    def meaning_of_list(self, name: str, column: Column, loss: str, cell: list[Any]) -> list[Any]:
        entries = [
            self._of_hash(name, column, each) if isinstance(each, TextHash) else self.meaning(name, column, loss, each)
            for each in cell if each is not None
        ]  # fmt: skip
        return [kept(column, entries)]

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        """Returns the stand-in's bucket or hash. For a list, it is the only entry; an empty text gives no entry."""
        alone = column.entry.stand_in(column, loss)
        found = _put(column, hash_of(name, column, alone))
        return found if not column.list else [[found] if alone else []]

    def meaning_of_hash(self, name: str, column: Column, hashed: TextHash) -> Any:
        if column.list:
            raise Wrong
        return self._of_hash(name, column, hashed)

    def _of_hash(self, name: str, column: Column, hashed: TextHash) -> Any:
        if (hashed.bits, hashed.seed) != (column.hash_bits, hash_seed(name)):
            raise Wrong
        return _put(column, hashed.value)

    def read(self, name: str, column: Column, loss: str, cell: Cell) -> str:
        return text_of(one_text(column, cell))


def hash_of(name: str, column: Column, text: str) -> int:
    """Returns the hash of a text of column `name`."""
    return _native.murmur3(text.encode(), hash_seed(name), column.hash_bits)


def kept(column: Column, entries: list[Any]) -> list[Any]:
    """Returns the entries that a slot takes. Wrong if there are too many."""
    if len(entries) > column.most_entries and not column.cut:
        raise Wrong
    return entries[: column.most_entries]


def _put(column: Column, found: int) -> int:
    """Returns what the slot stores for a hash: its bucket, or with a vocabulary the hash itself as an int64."""
    if column.vocabulary is not None:
        return found - (1 << 64) if found >> 63 else found
    return int(found % column.buckets)


ORACLE = Category()
