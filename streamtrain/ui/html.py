"""Pieces of HTML for what changes as a whole: tables, states, sparklines. All text that comes in is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import urlencode

STATES = {
    "training": "publishes snapshots", "quiet": "no publication for a while", "ended": "stopped by itself or by hand",
    "failed": "ended with an error", "waiting": "no snapshot yet", "away": "Kafka does not answer",
    "broken": "its topics cannot be read", "idle": "its trainer answers, and has learned all there is",
    "dead": "its trainer answers no more, and has not said why",
}  # fmt: skip
_NUMBER = re.compile(r"[~-]?\d")
_VOID = ("br", "input")  # have no end


class Html(str):
    """Text that is HTML already."""


def tag(name: str, content: object = "", /, **attributes: object) -> Html:
    """An element; attribute names have _ for -, and a last one is left out (class_)."""
    own = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{own}>" if name in _VOID else f"<{name}{own}>{piece(content)}</{name}>")


def piece(content: object) -> Html:
    return content if isinstance(content, Html) else Html(escape(str(content)))


def joined(pieces: Iterable[object]) -> Html:
    return Html("".join(piece(each) for each in pieces))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], caption: str) -> Html:
    """The first cell of a row is its head. Cells that are numbers stand to the right, and so does the head of a column
    that begins with one."""
    listed = list(rows)
    first = [*(listed[0] if listed else []), *head][: len(head)]
    sides = [{"class_": "st-number"} if at and _is_number(cell) else {} for at, cell in enumerate(first)]
    top = tag("tr", joined(tag("th", name, scope="col", **side) for name, side in zip(head, sides, strict=True)))
    body = joined(tag("tr", joined(_cell(at, cell) for at, cell in enumerate(row))) for row in listed)
    parts = joined([tag("caption", caption), tag("thead", top), tag("tbody", body)])
    return tag("div", tag("table", parts, class_="st-table"), class_="st-scroll")


def _cell(at: int, cell: object) -> Html:
    if at == 0:
        return tag("th", cell, scope="row")
    return tag("td", cell, class_="st-number") if _is_number(cell) else tag("td", cell)


def _is_number(cell: object) -> bool:
    return not isinstance(cell, Html) and _NUMBER.match(str(cell)) is not None


def state(name: str) -> Html:
    return tag("span", name, class_=f"st-state st-{name}", title=STATES[name])


def link(text: object, path: str, pairs: Sequence[tuple[str, str]] = (), current: bool = False, name: str = "") -> Html:
    """`name`: for who hears it, where others have the same text."""
    query = f"?{urlencode(pairs)}" if pairs else ""
    more = {"aria_current": "page"} if current else {}
    more |= {"aria_label": name} if name else {}
    return tag("a", text, href=f"{path}{query}", **more)


def sparkline(values: Sequence[float], beside: float | None, label: str, width: int = 120, height: int = 28) -> Html:
    """A line of the values, and one straight across of what it is compared with."""
    if len(values) < 2:
        return Html("")
    all_values = [*values, *([] if beside is None else [beside])]
    low, span = min(all_values), (max(all_values) - min(all_values)) or 1.0

    def y(value: float) -> float:
        return round(height - 3 - (value - low) / span * (height - 6), 1)

    step = (width - 4) / (len(values) - 1)
    points = " ".join(f"{round(2 + at * step, 1)},{y(value)}" for at, value in enumerate(values))
    parts = [tag("polyline", points=points, class_="st-line")]
    if beside is not None:
        parts.insert(0, tag("line", x1=2, x2=width - 2, y1=y(beside), y2=y(beside), class_="st-beside"))
    return tag(
        "svg", joined(parts), width=width, height=height, viewBox=f"0 0 {width} {height}", role="img", aria_label=label
    )
