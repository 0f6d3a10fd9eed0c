"""Who may ask: the page's own address alone, from the page itself, and elsewhere than on this machine with a token.

A page of another site could else read this one through the visitor's browser, by a name that leads here (DNS
rebinding), or over a WebSocket, which browsers let every site open.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import unquote, urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "streamtrain_token"
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class Guard:
    """An ASGI application around another. `hosts`: names it may be asked by, without a port; none: any, which wants a
    `token`."""

    def __init__(self, app: App, hosts: tuple[str, ...], token: str = "") -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        why = self.refusal(headers, scope.get("query_string", b"").decode("latin-1"))
        if why:
            await _refuse(scope, send, why)
        elif self._token and _asked_token(scope):
            await self._app(scope, receive, _with_cookie(send, self._token))
        else:
            await self._app(scope, receive, send)

    def refusal(self, headers: Mapping[str, str], query: str = "") -> str:
        """Why a request is refused; "" where it is not."""
        host = headers.get("host", "")
        if self._hosts and _name(host) not in self._hosts:
            known = ", ".join(self._hosts)
            return f"expected to be asked as one of {known}, got {host!r}; --host says where it listens"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return f"expected a request of a page of {host}, got one of {origin}"
        if self._token and not self._knows(headers, query):
            return "expected the token, as ?token=… once or as Authorization: Bearer …, got another or none"
        return ""

    def _knows(self, headers: Mapping[str, str], query: str) -> bool:
        given = [
            headers.get("authorization", "").removeprefix("Bearer "), *_asked_tokens(query),
            _cookie(headers.get("cookie", "")),
        ]  # fmt: skip
        return any(hmac.compare_digest(each.encode(), self._token.encode()) for each in given)


def _asked_tokens(query: str) -> list[str]:
    """A + of one stays what it is."""
    return [unquote(part.removeprefix("token=")) for part in query.split("&") if part.startswith("token=")]


def _name(host: str) -> str:
    """Of a Host header, without a port."""
    return urlsplit(f"//{host}").hostname or ""


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _asked_token(scope: Scope) -> bool:
    return scope["type"] == "http" and b"token=" in scope.get("query_string", b"")


def _with_cookie(send: Any, token: str) -> Any:
    """The answer hands the browser what it is asked by from now on."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
            message["headers"] = [*message.get("headers", []), (b"set-cookie", cookie.encode("latin-1"))]
        await send(message)

    return sent


async def _refuse(scope: Scope, send: Any, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
