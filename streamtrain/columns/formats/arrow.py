"""Arrow records: an IPC stream of a schema and batches of rows, as pyarrow writes it, not compressed.

All cells of a record are looked at before its first row is read: what is broken anywhere is no record.
"""

from __future__ import annotations

HELP = "Arrow IPC streams: a schema and batches of many rows, as pyarrow writes them"
CELLS = ("value", "list")
