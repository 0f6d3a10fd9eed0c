"""JSON records: an object or a flat array is a row, an array of them, or each on a line of its own, is many, an object
of arrays is columns.

A byte order mark before it is skipped. NaN is a missing cell. Infinity and -Infinity are read, and refused as values,
so that the other rows of a record still train.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from streamtrain.compute.options import Document, Word

HELP = "JSON text: an object, an array of objects or arrays, the same on lines of their own, or an object of arrays"
CELLS = ("value", "list", "pairs")
CONNECT_DECIMALS = True


def _is_text(given: str) -> bool:
    return given.lstrip()[:1] in ("{", "")


def _compact(given: str) -> str:
    """ValueError where it is no JSON Schema, which is an object."""
    found = json.loads(given) if given else ""
    if given and not isinstance(found, dict):
        raise ValueError("not an object")
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")) if given else ""


OPTIONS = {
    "frame": Word(
        of=("none", "registry"),
        default="none",
        help="what stands around a record: nothing, or its schema's name in a registry, in a header or before it; with "
        "[registry] that",
    ),
    "schema": Document(
        what="a JSON Schema",
        is_text=_is_text,
        reading=_compact,
        default="",
        help="that framed records are written under, and not checked by; reading needs none",
    ),
}
REGISTRY_OPTIONS = {"frame": "registry"}  # where the job has a registry and does not say otherwise
REGISTRY_TYPE = "JSON"


def registry_reading(text: str, others: Sequence[str] = ()) -> str:
    """Returns the schema that reads records of any schema: it accepts all JSON, because no schema is read."""
    return "true"


def registry_text(schema: str) -> str:
    """A schema of the settings as a registry takes it."""
    return schema
