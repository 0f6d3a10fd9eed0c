"""A guard for requests. They must use the page's own address and come from the page itself. Pages that are reachable
from other machines also need a token.

A page of another site could else read this one through the visitor's browser, by a name that leads here (DNS
rebinding), or over a WebSocket, which browsers let every site open.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote, unquote

from streamtrain.serving.asgi import foreign

COOKIE = "streamtrain_token"
_HEADERS = (  # the page's own scripts are in it, and NiceGUI compiles its templates in the browser
    (b"content-security-policy",
     b"default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
     b"img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; object-src 'none'; "
     b"base-uri 'self'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)  # fmt: skip
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
        elif self._token and scope["type"] == "http" and _parse_tokens(scope["query_string"].decode("latin-1")):
            await _hand_over(scope, send, self._token)
        else:
            await self._app(scope, receive, _with(_HEADERS, send))

    def refusal(self, headers: Mapping[str, str], query: str = "") -> str:
        """Why a request is refused; "" where it is not."""
        if why := foreign(headers.get("host", ""), headers.get("origin"), self._hosts):
            return why
        if self._token and not self._knows(headers, query):
            return "expected the token, as ?token=… once or as Authorization: Bearer …, got another or none"
        return ""

    def _knows(self, headers: Mapping[str, str], query: str) -> bool:
        given = [
            headers.get("authorization", "").removeprefix("Bearer "), *_parse_tokens(query),
            _cookie(headers.get("cookie", "")),
        ]  # fmt: skip
        return any(hmac.compare_digest(each.encode(), self._token.encode()) for each in given)


def _parse_tokens(query: str) -> list[str]:
    """A + of one stays what it is."""
    return [unquote(part.removeprefix("token=")) for part in query.split("&") if part.startswith("token=")]


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


async def _hand_over(scope: Scope, send: Any, token: str) -> None:
    """Gives the browser the token as a cookie, and the same page's address without it: none stays in its history."""
    pairs = scope["query_string"].decode("latin-1").split("&")
    left = "&".join(part for part in pairs if not part.startswith("token="))
    place = "./" + quote(scope["path"].rpartition("/")[2]) + (f"?{left}" if left else "")  # also under a proxy's path
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
    headers = [(b"location", place.encode("latin-1")), (b"set-cookie", cookie.encode("latin-1")), *_HEADERS]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _with(headers: Sequence[tuple[bytes, bytes]], send: Any) -> Any:
    """Adds headers to an answer."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *headers]
        await send(message)

    return sent


async def _refuse(scope: Scope, send: Any, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_HEADERS]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"{why}\n".encode()})
