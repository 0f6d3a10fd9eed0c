"""msgpack records: a map or a flat array is a row, an array of them is many, a map of arrays is columns."""

from __future__ import annotations

HELP = "msgpack: a map, an array of maps or arrays, or a map of arrays"
CELLS = ("value", "list", "pairs")
