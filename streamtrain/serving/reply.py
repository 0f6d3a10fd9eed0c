"""The reply to a request, and the refusals that every route has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

JSON = b"application/json"
Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, and what the log and the figures say of it."""

    code: int
    body: bytes
    kind: bytes = JSON
    headers: Headers = ()
    rows: int = 0
    errors: int = 0  # rows answered with one
    version: int = 0
    closes: bool = False  # the connection: what the client still sends is not read


class Refusal(Exception):
    """Ends a request with a status and a text."""

    def __init__(self, code: int, text: str, headers: Headers = (), closes: bool = False) -> None:
        super().__init__(text)
        self.code, self.headers, self.closes = code, headers, closes

    @property
    def reply(self) -> Reply:
        return Reply(self.code, as_json({"error": str(self)}), headers=self.headers, closes=self.closes)


class Gone(Exception):
    """The client has left; nobody is answered."""


def as_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def later(seconds: int = 1) -> Headers:
    """When to ask again."""
    return ((b"retry-after", str(seconds).encode()),)
