"""The message metadata that a column's cells can come from. native/decode/around_cells.h reads it."""

from __future__ import annotations

from streamtrain.registry import nearest

FROM = "from"  # the setting; as a name Python keeps the word for itself
KEY, TIMESTAMP = "key", "timestamp"
HEADERS = "headers."  # and the header's name; of one given twice the last counts
PARTS = (KEY, TIMESTAMP, "partition", "offset")
AROUND_HELP = (
    "what of the Kafka message around the record its cells are, and not of its value: key, headers.NAME (text), "
    "timestamp (ms since 1970), partition or offset"
)


def source_problem(source: str) -> str | None:
    """Returns what is wrong with the `from` of a column; None if nothing is."""
    name = source.removeprefix(HEADERS)
    if source in PARTS or (name != source and name and "\0" not in name):
        return None
    near = nearest(source, [*PARTS, HEADERS + "NAME"])
    hint = f"; did you mean {near!r}?" if near else ""
    return f"expected {', '.join(PARTS)} or {HEADERS}NAME, got {source!r}{hint}"


def holds_text(source: str) -> bool:
    """Returns True if the cells of this source are text; otherwise they are whole numbers."""
    return source == KEY or source.startswith(HEADERS)
