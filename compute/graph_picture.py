"""A picture of a model's vertices as SVG: one column a depth, the inputs on the left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 200, 46, 60, 24  # of a box, and between two
STYLE = (
    "text{font:13px sans-serif;fill:#1b1f24}.kind{font-size:11px;fill:#57606a}"
    "rect{fill:#f6f8fa;stroke:#57606a;rx:5}path{stroke:#57606a;fill:none}"
)
Point = tuple[int, int]


def picture(vertices: Sequence[Mapping[str, Any]], style: str = STYLE, label: str = "a network") -> str:
    """Draws `vertices` as compute/explain.py describes them, each behind what it reads. The default `style` suits a
    file of its own. Pass "" if the surrounding page styles rect, path, text and .kind."""
    depth: dict[str, int] = {}
    for vertex in vertices:
        depth[vertex["name"]] = 1 + max((depth[_of(name, depth)] for name in vertex["reads"]), default=-1)
    rows: Counter[int] = Counter()

    def next_place(column: int) -> Point:
        rows[column] += 1
        return column * (_WIDTH + _ACROSS) + 10, (rows[column] - 1) * (_HEIGHT + _DOWN) + 10

    places = {vertex["name"]: next_place(depth[vertex["name"]]) for vertex in vertices}
    ways = []
    for vertex in vertices:
        for read in (_of(name, depth) for name in vertex["reads"]):
            between = [next_place(column) for column in range(depth[read] + 1, depth[vertex["name"]])]  # past no box
            ways.append(_way([places[read], *between, places[vertex["name"]]]))
    wide = max(x for x, _ in places.values()) + _WIDTH + 10
    high = max(rows.values()) * (_HEIGHT + _DOWN) + 10
    boxes = [_box(vertex, *places[vertex["name"]]) for vertex in vertices]
    aria = f'role="img" aria-label="{escape(label, {chr(34): "&quot;"})}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" {aria}>'
    return "\n".join([head, *([f"<style>{style}</style>"] if style else []), *ways, *boxes, "</svg>", ""])


def _of(name: str, known: Mapping[str, Any]) -> str:
    """The vertex that has those columns: "input" of "input.hour"."""
    return name if name in known else name.partition(".")[0]


def _way(places: Sequence[Point]) -> str:
    """From the right side of the first box to the left side of the last."""
    x, y = places[0][0] + _WIDTH, places[0][1] + _HEIGHT // 2
    path = f"M{x} {y}"
    for at, (left, top) in enumerate(places[1:], 2):
        to, middle = top + _HEIGHT // 2, x + (left - x) // 2
        path += f" C{middle} {y} {middle} {to} {left} {to}"
        x, y = left, to
        if at < len(places):
            x += _WIDTH
            path += f" H{x}"
    return f'<path d="{path}"/>'


def _box(vertex: Mapping[str, Any], x: int, y: int) -> str:
    text = f"{vertex['kind']} [{vertex['columns']:,}]".strip()
    if vertex["parameters"]:
        text += f", {vertex['parameters']:,} parameters"
    return (
        f'<g><title>{escape(vertex["name"])}: {escape(text)}</title>'
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}"/>'
        f'<text x="{x + 8}" y="{y + 19}">{escape(vertex["name"])}</text>'
        f'<text class="kind" x="{x + 8}" y="{y + 36}">{escape(text)}</text></g>'
    )
