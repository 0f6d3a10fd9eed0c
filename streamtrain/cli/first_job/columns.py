"""Decides for each column of a sample what it is in a job file, and gives the reason."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamtrain.cli.first_job.cells import EVIDENCE_ROWS, FEW_VALUES, SampledColumn, is_number, sampled
from streamtrain.cli.first_job.label import decide_label
from streamtrain.cli.first_job.sample import Decision, Sample, change_operation, toml_key
from streamtrain.cli.first_job.texts import other_writing, written_reason
from streamtrain.columns.column import Column
from streamtrain.columns.formats.sparse_text import TAG
from streamtrain.columns.kinds.audio import WINDOW_S
from streamtrain.columns.kinds.parsed import NUMBER
from streamtrain.columns.mel import bands_of
from streamtrain.errors import UserMistake

FEW_CATEGORIES = 512  # up to so many values each has an id of its own
ROOM = 2  # ids for each value seen, so that new ones have room
BUCKETS_FOR_EACH = 8  # value: two of n values share one of 8n buckets for an eighth of the values at most
LEAST_BUCKETS = 4096
LARGE_TABLE = 1 << 18  # buckets from which on each has fewer numbers
REPEATS = 3  # rows a value in the mean, from which on an id can be learned from
LEAST_SPARSE = 1 << 18  # indexes: what vw -b is by default
PICTURE_SIDE = 64
CLIP_BANDS = (64, 32, 16, 8)
LONGEST_CLIP_S = 10.0  # 998 frames of 64 bands are near the most numbers there may be
HEAVY_TAIL = 100.0  # largest by median


def decide(sample: Sample, without: Mapping[str, str]) -> list[Decision]:
    """Returns a decision for each column, in the sample's order. `without`: columns to leave out, and why.

    Raises UserMistake where no column is left to learn from, or a label cannot be learned.
    """
    without = {**sample.unreadable, **without}
    for name in sample.labels:
        if name in without:
            raise UserMistake(f"{sample.source}: label {name}: {without[name]}")
    columns = sampled(sample.rows, sample.names())
    labels = [decide_label(sample, columns[name]) for name in sample.labels]
    when = _event_time([column for name, column in columns.items() if name not in sample.labels])
    found = {
        name: Decision(name, reason=without[name]) if name in without else _feature(sample, column, columns, when)
        for name, column in columns.items() if name not in sample.labels
    }  # fmt: skip
    if not any(each.feature for each in found.values()):
        found = {name: _parts(sample, columns[name], each) for name, each in found.items()}
    if not any(each.feature for each in found.values()):
        why = "; ".join(f"{name}: {each.reason or 'no feature'}" for name, each in found.items())
        raise UserMistake(
            f"{sample.source}: expected a column to learn {', '.join(sample.labels)} from, found none: "
            f"{why or 'there is no other column'}"
        )
    return [*found.values(), *labels]


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 1).bit_length()


def _unusable(column: SampledColumn) -> str:
    """Returns why a column cannot be a feature; empty where it can."""
    if not column.name:
        return "a column without a name, such as the index of a data frame"
    if "{" in column.name or "}" in column.name:
        return "a name with braces cannot be in a job file"
    if not column.values:
        return "empty in the sample"
    if column.nested:
        return "a list, of which only single elements can be columns, by a path that ends in [0]"
    if column.constant:
        return "the same in every row of the sample"
    if column.counts_rows:
        return "counts the rows"
    if column.identifies:
        return "a row's id"
    if not column.flat:
        return "neither numbers nor texts"
    return ""


def _event_time(columns: Sequence[SampledColumn]) -> str:
    """Returns the name of the column that says when a row happened; empty where none clearly does."""
    times = [column for column in columns if not column.nested and not column.constant and column.time is not None]
    best = max(times, key=lambda column: column.event_time_evidence, default=None)
    return best.name if best is not None and best.event_time_evidence else ""


def _feature(sample: Sample, column: SampledColumn, columns: Mapping[str, SampledColumn], when: str) -> Decision:
    name = column.name
    if sample.operation and name == sample.operation:
        return change_operation(name)
    if sample.weight and name == TAG:
        return Decision(name, reason="a line's tag, for its message's key", other='{ role = "key", path = "tag" }')
    if sample.weight and name == sample.weight and column.values:
        return Decision(name, 'role = "weight", missing = 1', "the weight of a row")
    if name and not column.nested and not column.constant and column.time is not None:
        return _time(sample, column, when)
    for look in (_list, _pairs, _picture, _clip):
        if (decision := look(sample, column)) is not None:
            return decision
    if why := _unusable(column):
        return Decision(name, reason=why)
    if column.numeric and not column.boolean and not column.coded:
        return _number(sample, column, [columns[label] for label in sample.labels])
    if column.prose:
        return _text(column)
    distinct = len(column.distinct)
    if distinct > 20 and distinct > 0.9 * len(column.values):
        return Decision(name, reason="nearly every row has another text")
    return _category(sample, column, "digits that are codes" if column.coded else "")


def _number(sample: Sample, column: SampledColumn, labels: Sequence[SampledColumn]) -> Decision:
    missing = ', missing = "mean"' if column.missing else ""
    parse = sample.parse(column, "decimal")
    why = "" if column.scale is None else f"decimals of scale {column.scale} in base64"
    number = Decision(column.name, f'kind = "number"{parse}, standardize = true{missing}', why, width=1, feature=True)
    if column.written is not None:
        other = other_writing(column.written, number.settings)
        return replace(number, reason=written_reason(column.written), other=other)
    if column.wholes is not None:
        other = f"{{ {number.settings} }}"
        distinct, rows = len(column.distinct), len(column.values)
        if column.too_large and distinct * REPEATS > rows:
            why = "whole numbers above 16,777,216, and nearly every row has its own: ids"
            return Decision(column.name, reason=why)
        if column.too_large:
            return _category(sample, column, "whole numbers above 16,777,216 that repeat: ids")
        repeats = rows >= EVIDENCE_ROWS and rows >= REPEATS * distinct
        if repeats and distinct > 2 and column.is_named_id():
            return _category(sample, column, "whole numbers that repeat, named as ids")
        if repeats and distinct > FEW_VALUES and not column.is_quantity:
            category = _category(sample, column, "", other)
            if any(_without_order(sample, column, label) for label in labels):
                return replace(category, reason="whole numbers that repeat and tell the label without order: ids")
            if _same_width(column):
                return replace(category, reason="whole numbers of the same many digits that repeat: ids")
    positive = [float(value) for value in column.values]
    middle = sorted(positive)[len(positive) // 2]
    if min(positive) >= 0 and middle > 0 and max(positive) > HEAVY_TAIL * middle:
        log = f"{toml_key(f'log_{column.name}')} = {{ log1p = {json.dumps(column.name)}, standardize = true }}"
        other = f'{{ role = "input" }}, and in [transforms] {log}'
        return replace(number, reason=f"the largest is {max(positive) / middle:.0f} times the median", other=other)
    return number


def _without_order(sample: Sample, column: SampledColumn, label: SampledColumn) -> bool:
    """Returns whether the column's values tell something of the label that their order does not."""
    rows = [(row.get(column.name), row.get(label.name)) for row in sample.rows]
    known = [(SampledColumn.of([{"": a}], ""), b) for a, b in rows if a not in (None, "") and b not in (None, "")]
    pairs = [(each.wholes[0], b) for each, b in known if each.wholes]
    return bool(pairs) and without_order([value for value, _ in pairs], as_numbers(b for _, b in pairs))


def without_order(values: Sequence[int], label: Sequence[float]) -> bool:
    """Returns whether values tell something of a label that their order does not: ids do, quantities seldom.

    Compares how much the label's means by value vary, beyond chance, with how much of that the mean of the two
    neighbouring values explains.
    """
    sums: dict[int, list[float]] = defaultdict(lambda: [0, 0.0])
    for value, number in zip(values, label, strict=True):
        sums[value][0] += 1
        sums[value][1] += number
    groups = [(count, total / count) for _, (count, total) in sorted(sums.items()) if count > 1]
    rows = sum(count for count, _ in groups)
    if len(groups) < 2 * FEW_VALUES or rows < 2 * len(groups):
        return False
    mean = sum(label) / len(label)
    spread = sum((number - mean) ** 2 for number in label) / len(label)
    between = sum(count * (each - mean) ** 2 for count, each in groups) / len(groups)
    if between < 2 * spread:  # the expectation is `spread` where values tell nothing
        return False
    centred = [each - mean for _, each in groups]
    neighbours = [(a + c) / 2 * b for a, b, c in zip(centred, centred[1:], centred[2:], strict=False)]
    own = sum(each * each for each in centred) / len(centred)
    return sum(neighbours) / len(neighbours) < 0.25 * own


def as_numbers(cells: Iterable[Any]) -> list[float]:
    """Returns a label's cells as numbers: of texts, whether it is the most frequent one."""
    cells = list(cells)
    if all(is_number(cell) for cell in cells):
        return [float(cell) for cell in cells]
    (most, _), *_ = Counter(map(str, cells)).most_common(1)
    return [float(str(cell) == most) for cell in cells]


def _same_width(column: SampledColumn) -> bool:
    """Returns whether its numbers have the same five digits or more, as zip codes have."""
    widths = {len(str(abs(whole))) for whole in column.wholes or ()}
    return len(widths) == 1 and widths.pop() >= 5


def _category(sample: Sample, column: SampledColumn, why: str, other: str = "") -> Decision:
    """Few values have an id each and room for new ones; many are hashed."""
    distinct = sample.distinct(column)
    embed = max(2, min(16, round(math.sqrt(distinct))))
    missing = ', missing = ""' if column.missing else ""
    if distinct <= FEW_CATEGORIES:
        size = f"vocabulary = {{ capacity = {_power_of_two(max(16, ROOM * distinct))} }}"
        counted = f"{distinct} values"
    else:
        size, embed = _buckets(distinct)
        counted = f"about {distinct:,} values"
    settings = f'kind = "category", {size}{_one_text(column)}, embed = {embed}{missing}'
    why = why if column.written is None else written_reason(column.written)
    reason = f"{why}; {counted}" if why else counted
    return Decision(column.name, settings, reason, other, values=distinct, width=embed, feature=True)


def _one_text(column: SampledColumn) -> str:
    """The setting that makes one value of the texts for one: of True and true, of 1.0 and 1."""
    if column.parse:
        return f', parse = "{column.parse}"'
    wholes = () if column.coded else column.wholes or ()
    texts = [isinstance(cell, str) and cell != str(whole) for cell, whole in zip(column.values, wholes, strict=False)]
    return f', parse = "{NUMBER}"' if any(texts) else ""


def _buckets(distinct: int) -> tuple[str, int]:
    """The setting for so many values, and how many numbers each bucket has."""
    buckets = _power_of_two(max(LEAST_BUCKETS, BUCKETS_FOR_EACH * distinct))
    embed = max(2, min(8 if buckets >= LARGE_TABLE else 16, round(math.sqrt(distinct))))
    return f"buckets = {buckets}", embed


def _list(sample: Sample, column: SampledColumn) -> Decision | None:
    """Fractions of one length are a vector, else a list is of categories."""
    if not column.elements:
        return None
    sizes = [len(cell) for cell in column.values]
    if len(set(sizes)) == 1 and any(isinstance(each, float) for each in column.elements):
        missing = ', missing = "mean"' if column.missing else ""
        settings = f'kind = "vector", size = {sizes[0]}, standardize = true{missing}'
        return Decision(column.name, settings, f"lists of {sizes[0]} numbers", width=sizes[0], feature=True)
    distinct = max(len(set(map(str, column.elements))), sample.counts.get(column.name, 0))
    most = _power_of_two(max(16, 2 * max(sizes)))
    size, embed = _buckets(distinct)
    missing = ', missing = ""' if column.missing else ""
    settings = f'kind = "category", list = true, {size}, embed = {embed}, most = {most}, cut = true{missing}'
    why = f"lists of up to {max(sizes)}, about {distinct} values"
    return Decision(column.name, settings, why, width=embed, feature=True)


def _pairs(sample: Sample, column: SampledColumn) -> Decision | None:
    """An index, or a name, and a number each."""
    if not column.pairs:
        return None
    keys, most = [key for key, _ in column.pairs], max(len(cell) for cell in column.values)
    highest = max((key for key in keys if isinstance(key, int)), default=0)
    buckets = max(_power_of_two(highest + 1), LEAST_SPARSE)
    room = _power_of_two(max(64, 2 * most))
    settings = f'kind = "sparse", buckets = {buckets}, most = {room}, cut = true'
    why = f"up to {most} pairs of a row, {len(set(map(str, keys)))} different keys"
    return Decision(column.name, settings, why, feature=True, sparse=True)


def _picture(sample: Sample, column: SampledColumn) -> Decision | None:
    """Large pictures are reduced to a size that a dense network can hold."""
    if column.picture is None:
        return None
    height, width = column.picture
    longest = max(height, width, PICTURE_SIDE)
    size = [max(1, round(side * PICTURE_SIDE / longest)) for side in (height, width)]
    missing = ", missing = 128" if column.missing else ""
    why = f"pictures, most of them of {height} x {width} points; needs the extra images"
    points = size[0] * size[1] * 3
    return Decision(column.name, f'kind = "image", size = {size}{missing}', why, points=points, feature=True)


def _clip(sample: Sample, column: SampledColumn) -> Decision | None:
    """Energies by bands, as long as the longest clip of the most frequent rate."""
    heads = column.clips
    if not heads:
        return None
    rates = Counter(rate for rate, _, _ in heads)
    rate, times = rates.most_common(1)[0]
    longest = max(count for of, _, count in heads if of == rate) / rate
    seconds = min(LONGEST_CLIP_S, max(math.ceil(100 * longest) / 100, WINDOW_S))
    window = round(WINDOW_S * rate)
    mel = next((bands for bands in CLIP_BANDS if not bands_of(rate, window, bands).empty), 1)
    missing = ", missing = 0" if column.missing else ""
    why = f"sound, {times} of {len(heads)} of {rate} samples a second, up to {longest:.3g} s; needs the extra audio"
    settings = f'kind = "audio", rate = {rate}, seconds = {seconds}, features = {{ mel = {mel} }}, standardize = true'
    parsed = Column.model_validate({"kind": "audio", "rate": rate, "seconds": seconds, "features": {"mel": mel}})
    return Decision(column.name, settings + missing, why, width=parsed.sound.width, feature=True)


def _text(column: SampledColumn) -> Decision:
    """Returns a decision for a text column: its words and pairs of words are the features."""
    most, missing = _power_of_two(max(64, 4 * column.prose)), ', missing = ""' if column.missing else ""
    settings = f'kind = "text", ngrams = [1, 2], buckets = {LEAST_SPARSE}, embed = 8, most = {most}, cut = true'
    return Decision(column.name, settings + missing, f"texts of up to {column.prose} words", width=8, feature=True)


def _time(sample: Sample, column: SampledColumn, when: str) -> Decision:
    assert column.time is not None
    what, unit = column.time
    skip = ', missing = "skip"' if column.missing else ""
    parse = sample.parse(column, "iso8601") if column.time == ("a time as text", "ms") else ""
    settings = f'role = "event_time"{parse or f", unit = {json.dumps(unit)}"}{skip}'
    if column.name == when:
        sent = "; `produce` sends milliseconds, so must your program" if sample.as_texts and unit == "ms" else ""
        return Decision(column.name, settings, f"{what}{sent}")
    if when:
        return Decision(column.name, reason=f"{what}; {when} is the event time", other=f"{{ {settings} }}")
    why = f"{what}, but neither its name nor the order of rows says that rows happened then"
    return Decision(column.name, reason=why, other=f"{{ {settings} }}")


def _parts(sample: Sample, column: SampledColumn, before: Decision) -> Decision:
    """Parts of a time as features, where there is nothing else to learn from."""
    if column.time is None or column.nested or column.constant or not column.name:
        return before
    key = toml_key(f"{column.name}_is")
    cyclic = (
        f'{key} = {{ time = {json.dumps(column.name)}, parts = ["hour", "weekday", "day_of_year"], cyclic = true }}'
    )
    settings = before.settings or before.other.strip("{ }").replace('role = "event_time"', 'kind = "time"')
    reason = f"{before.reason}; its hour, weekday and day are the only features; for lags, write them upstream"
    return replace(before, settings=settings, reason=reason, other="", width=6, feature=True, transforms=(cyclic,))
