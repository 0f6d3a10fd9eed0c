"""Avro schemas of rows that tests share, and their data as fastavro writes them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro


def record(*fields: tuple[str, Any], name: str = "Row", **more: Any) -> dict[str, Any]:
    """A record schema of (name, type) pairs."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": of} for field, of in fields], **more}


def nullable(of: Any) -> list[Any]:
    return ["null", of]


def logical(of: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": of, "logicalType": name, **more}


def written(schema: Any, datum: Any) -> bytes:
    """One datum."""
    to = io.BytesIO()
    fastavro.schemaless_writer(to, fastavro.parse_schema(json.loads(json.dumps(schema))), datum)
    return to.getvalue()
