"""The words of ASGI, between a server and an application: https://asgi.readthedocs.io/en/latest/specs/www.html"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")

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


def foreign(host: str, origin: str | None, hosts: tuple[str, ...]) -> str:
    """Why a browser's page of another site may have asked; "" where it did not. `hosts`: names to be asked by, without
    a port; none: any."""
    if hosts and (urlsplit(f"//{host}").hostname or "") not in hosts:
        return f"expected to be asked as one of {', '.join(hosts)}, got {host!r}; --host says where it listens"
    if origin is not None and urlsplit(origin).netloc != host:
        return f"expected a request of a page of {host}, got one of {origin}"
    return ""
