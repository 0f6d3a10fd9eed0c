"""What stands before a real registry and can be away, slow or refuse: faults of a network and of a service."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class RegistryFront:
    """Passes requests on as long as `mode` is "through"; "away": closes; a number: answers with that code."""

    def __init__(self, target: str) -> None:
        self.mode: str | int = "through"
        self.away: set[str] = set()  # ids that get no answer
        self.unknown: set[str] = set()  # ids that it knows nothing of
        self.asked: list[str] = []
        front = self
        parts = urlsplit(target)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                front.asked.append(self.path)
                if front.mode == "away" or front.names(self.path) & front.away:
                    self.close_connection = True
                    return
                if front.names(self.path) & front.unknown:
                    code, body = 404, b'{"error_code": 40403, "message": "no such schema"}'
                else:
                    given = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
                    code, body = front.answer(f"{parts.scheme}://{parts.netloc}{self.path}", given)
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}{parts.path}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @staticmethod
    def names(path: str) -> set[str]:
        """The schema id that a request asks for, or "subjects"."""
        if "/subjects/" in path:
            return {"subjects"}
        return {path.rpartition("/")[2].partition("?")[0]} if "/schemas/ids/" in path else set()

    def answer(self, url: str, given: bytes | None) -> tuple[int, bytes]:
        if isinstance(self.mode, int):
            return self.mode, b'{"error_code": %d, "message": "said so"}' % self.mode
        try:
            asked = urllib.request.Request(url, given, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
            with urllib.request.urlopen(asked, timeout=30) as got:
                return got.status, got.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
