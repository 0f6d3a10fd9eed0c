"""Which schemas the records of a publication name: what ingest has left of them among the dead letters in the ring.

Used by the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain import _native
from streamtrain.topics.named_schemas import Answer
from streamtrain.topics.ring_structs import HEAD


class NamedSchemas:
    """The schemas of one run. Ingest reports the content of a schema once, and afterwards only the rounds that name
    it."""

    def __init__(self, ring: _native.CoordinatorEnd) -> None:
        self._ring = ring
        self._known: dict[str, Answer] = {}

    def up_to(self, last_round: int) -> dict[str, Answer]:
        """Returns the schemas of the unpublished rounds up to `last_round`, by name."""
        named = {}
        for name, answer in _entries(self._ring.schemas(last_round)):
            if answer is not None:
                self._known[name] = answer
            named[name] = self._known[name]
        return named


def _entries(ring: bytes) -> Iterator[tuple[str, Answer | None]]:
    """None: it has been told before."""
    at = 0
    while at < len(ring):
        head = HEAD.read(ring, at)
        name_at = at + HEAD.size
        text_at = name_at + head.key_bytes
        refusal_at = text_at + head.header_bytes
        text = ring[text_at:refusal_at].decode()
        refusal = ring[refusal_at : refusal_at + head.value_bytes].decode("utf-8", "replace")
        yield ring[name_at:text_at].decode("ascii"), (text, refusal) if head.record_bytes else None
        at += head.entry_bytes
