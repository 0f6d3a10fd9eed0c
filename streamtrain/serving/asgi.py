"""The words of ASGI, between a server and an application: https://asgi.readthedocs.io/en/latest/specs/www.html"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first of that name, which is in small letters."""
    for each, value in scope["headers"]:
        if each == name:
            found: bytes = value
            return found
    return None
