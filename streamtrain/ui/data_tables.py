"""Tables of a job's columns in two windows of rows, of its dead letters, and of one of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from streamtrain.clients.dead_letters import Found
from streamtrain.topics.dead_letters import DeadLetter
from streamtrain.ui import html, telling
from streamtrain.ui.lineage_tables import when
from streamtrain.ui.sampling import NAMED_ROWS, Sample, Window

_SOME, _MUCH = 0.1, 0.25  # of the stability index: what is usually called a shift, and a large one
_NEWS = "newest"
_HEAD = (
    "column", "holds", "mean, oldest", _NEWS, "deviation, oldest", _NEWS, "missing, oldest", _NEWS, "unusable, oldest",
    _NEWS, "clipped, oldest", _NEWS, "differing", "drift",
)  # fmt: skip
_MOST_BYTES = 4_096  # of a letter that are shown
_WIDTH = 16  # bytes of a line


def columns(sample: Sample) -> html.Html:
    """Returns a table of every column, then a table of the most frequent texts."""
    first, last = sample.first, sample.last
    parts = [html.tag("p", each) for each in _describe_sample(sample)]
    rows = [_column(name, first, last) for name in last.columns]
    parts.append(html.table(_HEAD, rows, "Columns as records give them, in the oldest rows and in the newest"))
    values = [row for name in last.values for row in _values(name, first, last)]
    if values:
        counted = min(NAMED_ROWS, last.values[next(iter(last.values))].rows)
        title = f"The commonest values of categories, of about {counted:,} rows at each end"
        table = html.table(("column", "value", "share, oldest", _NEWS), values, title)
        parts.append(html.tag("div", table, class_="st-narrow"))
    return html.joined(parts)


def _describe_sample(sample: Sample) -> Iterator[str]:
    where = "half and half, all that it keeps" if sample.halved else "at both ends of what it keeps"
    at = time.strftime("%H:%M:%S", time.localtime(sample.at_s))
    spans = " and ".join(
        "; ".join(f"{number}: {low:,} to {end:,}" for number, (low, end) in enumerate(window.spans) if low < end)
        for window in (sample.first, sample.last)
    )
    yield (
        f"{sample.first.rows:,} and {sample.last.rows:,} rows of {sample.topic} were read at {at}, {where}: offsets by "
        f"partition {spans or 'none'}."
    )
    if sample.clip_version is not None:
        yield f"Clipped is what version {sample.clip_version} sees cut, being too many deviations away."
    yield (
        f"Drift is the population stability index of the newest rows against the oldest: from {_SOME} on some, from "
        f"{_MUCH} on much."
    )


def _column(name: str, first: Window, last: Window) -> tuple[object, ...]:
    own, other = last.columns[name], first.columns[name]
    pairs = [(_number(each.get("mean")), _number(each.get("deviation"))) for each in (other, own)]
    about = "" if own.get("distinct_is_exact", True) else "~"
    return (
        name, own["holds"], pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1],
        *(_share(each["missing"], each["rows"]) for each in (other, own)),
        *(_share(each["unusable"], each["rows"]) for each in (other, own)),
        *(telling.NONE if name not in each.clipped else _part(each.clipped[name]) for each in (first, last)),
        f"{about}{own['distinct']:,}" if "distinct" in own else telling.NONE, _drift(own.get("drift")),
    )  # fmt: skip


def _drift(index: float | None) -> html.Html:
    if index is None:
        return html.piece(telling.NONE)
    word = "much" if index >= _MUCH else "some" if index >= _SOME else ""
    style = {"much": "failed", "some": "training"}.get(word, "quiet")
    badge = html.tag("span", word, class_=f"st-state st-{style}") if word else ""
    return html.tag("span", html.joined([f"{index:.3f} ", badge]))


def _values(name: str, first: Window, last: Window) -> Iterator[tuple[object, ...]]:
    own, other = last.values[name], first.values[name]
    before, now = dict(other.counts), dict(own.counts)
    for value in list(dict.fromkeys([*now, *before]))[: len(own.counts) or len(other.counts)]:
        shares = [_share(counts[value], max(1, of.rows)) if value in counts else "rarer"
                  for counts, of in ((before, other), (now, own))]  # fmt: skip
        yield name, html.tag("code", value or "(missing)"), *shares


def _share(count: int, of: int) -> str:
    return _part(count / max(1, of))


def _part(share: float) -> str:
    return "0" if not share else f"{share:.1%}" if share >= 0.001 else "<0.1%"


def _number(value: float | None) -> str:
    return telling.NONE if value is None or not math.isfinite(value) else f"{value:.4g}"


def letters(found: Sequence[Found], link: Callable[[str], html.Html]) -> html.Html:
    """A line each, with a link by its place in the topic."""
    if not found:
        return html.tag("p", "There is no dead letter.")
    rows = [
        (
            link(f"{each.partition}@{each.offset}"), when(each.timestamp_ms), _record(each.letter),
            f"{each.letter.row_count:,}", html.tag("code", each.letter.rows[0].path), each.letter.rows[0].reason,
        ) for each in found
    ]  # fmt: skip
    head = ("letter", "when", "record", "rows", "path", "reason")
    return html.table(head, rows, "Dead letters, the newest first; open one by its place")


def _record(letter: DeadLetter) -> html.Html:
    return html.tag("span", f"{letter.topic}[{letter.partition}]@{letter.offset}")


def letter(found: Found) -> html.Html:
    """Everything that one tells: reasons, what stood around its record, bytes."""
    own = found.letter
    around = [("key", own.key)] if own.key is not None else []
    facts: list[tuple[str, object]] = [
        ("record", _record(own)), ("run and round", html.tag("span", f"{own.run}, {own.round}")),
        ("bytes", html.tag("span", f"{own.value_bytes:,}")),
        *((name, html.tag("code", _text(value))) for name, value in [*around, *own.headers]),
    ]  # fmt: skip
    title = f"Dead letter {found.partition}@{found.offset}, {when(found.timestamp_ms)}"
    reasons = [
        (_rows(each.row_from, each.row_to - 1), html.tag("code", each.path), each.reason)
        for each in own.rows
    ]  # fmt: skip
    parts = [html.table(("", ""), facts, title), html.table(("rows", "path", "reason"), reasons, "Why")]
    if own.value is None:
        text = "Its bytes are not in the letter: they are those of the record, as long as its topic keeps it."
        return html.joined([*parts, html.tag("p", text)])
    more = f", the first {_MOST_BYTES:,}" if len(own.value) > _MOST_BYTES else ""
    pre = html.tag("pre", dump(own.value[:_MOST_BYTES]), class_="st-bytes", tabindex=0, aria_label="the record's bytes")
    return html.joined([*parts, html.tag("h2", f"Bytes{more}"), pre])


def _rows(first: int, last: int) -> html.Html:
    return html.tag("span", str(first) if first == last else f"{first} to {last}")


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace")[:500] if isinstance(value, bytes) else str(value)


def dump(value: bytes) -> str:
    """Lines of an offset, bytes in hexadecimal, and what of them is ASCII."""
    lines = []
    for at in range(0, len(value), _WIDTH):
        part = value[at : at + _WIDTH]
        ascii_text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:05x}  {part.hex(' '):<{3 * _WIDTH}} {ascii_text}")
    return "\n".join(lines)
