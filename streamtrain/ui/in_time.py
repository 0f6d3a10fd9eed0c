"""An answer over HTTP that is all there, head and body, within a time; without proxies."""

from __future__ import annotations

import http.client
import io
import time
import urllib.request
from typing import Any


def opened(url: str, within_s: float) -> Any:
    """The answer, to be closed; TimeoutError where a part of it is not there in time."""
    until_s = time.monotonic() + within_s

    class Answer(http.client.HTTPResponse):
        def __init__(self, sock: Any, *arguments: Any, **more: Any) -> None:
            super().__init__(sock, *arguments, **more)
            self.fp: Any = io.BufferedReader(_InTime(sock, self.fp.detach(), until_s, within_s))

    class Plain(http.client.HTTPConnection):
        response_class = Answer

    class Secure(http.client.HTTPSConnection):
        response_class = Answer

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Plain, request)

    class SecureHandler(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(Secure, request)

    direct = urllib.request.ProxyHandler({})  # a proxy does not know this machine's ports
    return urllib.request.build_opener(direct, PlainHandler, SecureHandler).open(url, timeout=within_s)


class _InTime(io.RawIOBase):
    """A stream of the bytes from a socket until a deadline. Reads after that raise TimeoutError."""

    def __init__(self, sock: Any, raw: io.RawIOBase, until_s: float, within_s: float) -> None:
        self._sock, self._raw, self._until_s, self._within_s = sock, raw, until_s, within_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until_s - time.monotonic()
        try:
            if left_s > 0:
                self._sock.settimeout(left_s)
                return self._raw.readinto(buffer)
        except TimeoutError:
            pass
        raise TimeoutError(f"it was not all there in {self._within_s:.0f} s")

    def close(self) -> None:
        self._raw.close()
        super().close()
