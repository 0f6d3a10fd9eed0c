"""A front of a real registry that can be away, slow or refuse: faults of a network and of a service.

The tests' registry knows no GUIDs; the front gives each schema one, as Confluent Platform 8's registry does.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_MOST_IDS = 10_000


class RegistryFront:
    """Passes requests on as long as `mode` is "through"; "away": closes; a number: answers with that code."""

    def __init__(self, target: str) -> None:
        self.mode: str | int = "through"
        self.guids = True  # whether it knows any
        self.away: set[str] = set()  # names that get no answer
        self.unknown: set[str] = set()  # names that it knows nothing of
        self.paths: list[str] = []
        front = self
        parts = urlsplit(target)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                front.paths.append(self.path)
                if front.mode == "away" or front.names(self.path) & front.away:
                    self.close_connection = True
                    return
                path = front.without_guid(self.path)
                if path is None or front.names(self.path) & front.unknown:
                    code, body = 404, b'{"error_code": 40403, "message": "no such schema"}'
                else:
                    given = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
                    code, body = front.answer(f"{parts.scheme}://{parts.netloc}{path}", given)
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
        """The schema's name that a request asks for, or "subjects"."""
        if "/subjects/" in path:
            return {"subjects"}
        is_schema = "/schemas/ids/" in path or "/schemas/guids/" in path
        return {path.rpartition("/")[2].partition("?")[0]} if is_schema else set()

    def guid(self, schema_id: int) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.url}/{schema_id}"))

    def without_guid(self, path: str) -> str | None:
        """The path for the registry behind; None for a GUID of no schema."""
        if not self.guids or "/schemas/guids/" not in path:
            return path
        folder, _, rest = path.partition("/schemas/guids/")
        guid = rest.partition("?")[0]
        found = next((each for each in range(1, _MOST_IDS) if self.guid(each) == guid), None)
        return None if found is None else f"{folder}/schemas/ids/{found}"

    def with_guid(self, body: bytes) -> bytes:
        """An answer about a schema with its GUID beside its id."""
        document = json.loads(body) if self.guids and body[:1] == b"{" else {}
        return json.dumps({**document, "guid": self.guid(document["id"])}).encode() if "id" in document else body

    def answer(self, url: str, given: bytes | None) -> tuple[int, bytes]:
        if isinstance(self.mode, int):
            return self.mode, b'{"error_code": %d, "message": "said so"}' % self.mode
        try:
            request = urllib.request.Request(url, given, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
            with urllib.request.urlopen(request, timeout=30) as got:
                return got.status, self.with_guid(got.read())
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
