"""The page's server answers its own pages and holders of the token."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamtrain.ui.guard import COOKIE, LOOPBACK, Guard


def ask(guard: Guard, headers: dict[str, str], query: str = "", kind: str = "http") -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    told = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "headers": told, "query_string": query.encode(), "path": "/"}
    asyncio.run(guard(scope, None, send))
    return sent


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"host": "127.0.0.1:9000"}, True),
        ({"host": "localhost:9000", "origin": "http://localhost:9000"}, True),
        ({"host": "[::1]:9000"}, True),
        ({"host": "evil.example:9000"}, False),  # a name that was made to lead here
        ({"host": "127.0.0.1.evil.example"}, False),
        ({}, False),
        ({"host": "localhost:9000", "origin": "http://evil.example"}, False),
        ({"host": "localhost:9000", "origin": "http://localhost:8000"}, False),  # another server of this machine
        ({"host": "localhost:9000", "origin": "null"}, False),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_only_the_page_itself_asks(headers: dict[str, str], allowed: bool, kind: str) -> None:
    sent = ask(Guard(application, LOOPBACK), headers, kind=kind)
    if allowed:
        assert sent[0]["status"] == 200
    elif kind == "http":
        assert sent[0]["status"] == 403 and b"expected" in sent[1]["body"]
    else:
        assert sent == [{"type": "websocket.close", "code": 1008, "reason": "refused"}]


@pytest.mark.parametrize(
    ("token", "headers", "query", "status"),
    [
        ("a+b/c==", {}, "token=a+b/c==", 200),  # a plus of a token stays one
        ("a+b/c==", {}, "job=x&token=a%2Bb%2Fc%3D%3D", 200),
        ("a+b/c==", {}, "token=a%20b/c==", 403),
        ("s3cret", {}, "", 403),
        ("s3cret", {}, "token=wrong", 403),
        ("s3cret", {"cookie": f"{COOKIE}=wrong"}, "", 403),
        ("s3cret", {"cookie": f"a=b; {COOKIE}=s3cret"}, "", 200),
        ("s3cret", {"authorization": "Bearer s3cret"}, "", 200),
        ("s3cret", {"cookie": f"{COOKIE}=s3cret", "origin": "http://evil.example"}, "", 403),
    ],
)
def test_a_token_is_needed(token: str, headers: dict[str, str], query: str, status: int) -> None:
    sent = ask(Guard(application, (), token), {"host": "trainer.example:9000", **headers}, query)
    assert sent[0]["status"] == status
    if query and status == 200:  # the browser keeps it
        cookie = dict(sent[0]["headers"])[b"set-cookie"].decode()
        assert cookie == f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
