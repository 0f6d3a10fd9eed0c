"""Bodies of requests as they come, up to the limits: 413 for one too large, 408 for one too slow, 429 for too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streamtrain.serving.asgi import Receive, Scope, header
from streamtrain.serving.config import BODY_S, Limits
from streamtrain.serving.reply import Gone, Refusal, later


class Bodies:
    """The request bodies that one process has in memory. Only one event loop uses them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._requests = 0
        self._bytes = 0

    @asynccontextmanager
    async def read(self, scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
        """The body, which counts as long as this is open. Raises Refusal, or Gone."""
        if self._requests >= self._limits.most_requests:
            raise Refusal(429, f"expected at most {self._limits.most_requests} requests at once, got more; send fewer "
                               "or start more workers", later(), closes=True)  # fmt: skip
        self._check(scope)
        counter = _ByteCounter()
        self._requests += 1
        try:
            yield await self._all(receive, counter)
        finally:
            self._requests -= 1
            self._bytes -= counter.bytes

    def _check(self, scope: Scope) -> None:
        encoding = header(scope, b"content-encoding")
        if encoding is not None and encoding.lower() != b"identity":
            raise Refusal(415, f"content-encoding: expected none, got {encoding.decode('latin-1')}", closes=True)
        length = header(scope, b"content-length")
        if length is not None and int(length) > self._limits.most_bytes:
            raise self._too_large(int(length))

    async def _all(self, receive: Receive, counter: _ByteCounter) -> bytes:
        try:
            async with asyncio.timeout(BODY_S):
                message = await receive()
                if message["type"] == "http.request" and not message.get("more_body", False):
                    body: bytes = message.get("body", b"")
                    self._take(counter, len(body))
                    return body
                return await self._parts(message, receive, counter)
        except TimeoutError:
            raise Refusal(408, f"expected the whole body within {BODY_S:g} s, got {counter.bytes:,} bytes",
                          closes=True) from None  # fmt: skip

    async def _parts(self, message: object, receive: Receive, counter: _ByteCounter) -> bytes:
        parts: list[bytes] = []
        while True:
            assert isinstance(message, dict)
            if message["type"] == "http.disconnect":
                raise Gone
            self._take(counter, len(message.get("body", b"")))
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)
            message = await receive()

    def _take(self, counter: _ByteCounter, size: int) -> None:
        counter.bytes += size
        self._bytes += size
        if counter.bytes > self._limits.most_bytes:
            raise self._too_large(counter.bytes)
        if self._bytes > self._limits.total_bytes:
            raise Refusal(429, f"expected bodies of at most {self._limits.total_bytes:,} bytes at once, got more; send "
                               "fewer at once", later(), closes=True)  # fmt: skip

    def _too_large(self, size: int) -> Refusal:
        most = self._limits.most_bytes
        return Refusal(413, f"expected a body of at most {most:,} bytes, got {size:,}; send fewer rows at once, or "
                            "serve with --most-bytes", closes=True)  # fmt: skip


class _ByteCounter:
    """The number of bytes that one request has in memory."""

    bytes = 0
