"""Decides what a label is: 0 or 1, classes or a number; and its loss."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from streamtrain.cli.first_job.cells import FEW_VALUES, SampledColumn, words_of
from streamtrain.cli.first_job.sample import Decision, Sample
from streamtrain.cli.first_job.texts import other_writing, written_reason
from streamtrain.columns.kinds.kind import SKIP, SKIP_HEAD
from streamtrain.columns.kinds.parsed import NUMBER
from streamtrain.errors import UserMistake

MOST_CLASSES = 1_000
OFTEN = 8  # rows a value of a label in the mean, from which on it may be a class
# words of a label's name that make whole numbers a quantity
_NUMBER_LABELS = {
    "count", "counts", "num", "total", "sum", "qty", "quantity", "age", "year", "years", "rating", "ratings", "stars",
    "score", "amount", "price", "days", "hours", "minutes", "visits", "clicks", "views", "votes",
}  # fmt: skip


def decide_label(sample: Sample, column: SampledColumn) -> Decision:
    """A label's settings, and the loss that they need."""
    name, several = column.name, len(sample.labels) > 1
    skip = f', missing = "{SKIP_HEAD if several else SKIP}"' if column.missing else ""
    if not column.values or not column.flat:
        raise UserMistake(f"--label {name}: expected numbers or texts in the sample, found neither")
    distinct = column.distinct
    if len(distinct) < 2:
        raise UserMistake(f"--label {name}: expected at least two values in the sample, found only {distinct[0]!r}")
    parse = sample.parse(column, "decimal")
    as_number = f'role = "label"{parse}, standardize = true{skip}'
    if column.numeric and not column.coded:
        if {float(value) for value in column.values} <= {0.0, 1.0}:
            why = "0 or 1" if column.written is None else written_reason(column.written)
            return Decision(name, f'role = "label"{parse}{skip}', why, loss="binary_cross_entropy")
        counts = Counter(column.wholes or ())
        classes = class_settings(sorted(counts), sample.parse(column, NUMBER) + skip)
        number = Decision(name, as_number, "a number", loss="mean_squared_error")
        if column.written is not None:
            written = column.written
            return replace(number, reason=written_reason(written), other=other_writing(written, as_number))
        if not counts or len(counts) > MOST_CLASSES or len(column.values) < 2 * len(counts):
            return _tailed(column, number)
        why = f"{len(counts)} different whole numbers in the sample"
        if not _are_classes(name, counts):
            loss = "binary_cross_entropy" if len(counts) == 2 else "softmax_cross_entropy"
            other = f'{{ {classes} }} and loss = "{loss}"'
            return _tailed(column, replace(number, reason=f"{why}, taken as a number", other=other))
        other = f'{{ {as_number} }} and loss = "mean_squared_error"' if len(counts) > 2 else ""
        return classified(name, classes, len(counts), f"{why}, taken as classes", other)
    if len(distinct) > MOST_CLASSES:
        raise UserMistake(
            f"--label {name}: expected numbers or at most {MOST_CLASSES} classes, found {len(distinct)} texts"
        )
    return classified(name, class_settings(map(str, distinct), skip), len(distinct), f"{len(distinct)} classes")


def class_settings(classes: Iterable[str | int], skip: str) -> str:
    """Returns the settings of a label with these classes, which are as they are in predictions."""
    return f'role = "label", classes = [{", ".join(json.dumps(each, ensure_ascii=False) for each in classes)}]{skip}'


def classified(name: str, settings: str, count: int, why: str, other: str = "") -> Decision:
    """Returns the decision for a label of so many classes."""
    loss = "binary_cross_entropy" if count == 2 else "softmax_cross_entropy"
    return Decision(name, settings, why, other, loss=loss, classes=count)


def _tailed(column: SampledColumn, number: Decision) -> Decision:
    """With the other choice for counts and heavy tails."""
    if number.other or column.wholes is None or min(column.wholes) < 0:
        return number
    settings = number.settings.replace(", standardize = true", "")
    return replace(number, other=f'{{ {settings} }} and loss = "poisson" for a count of events')


def _are_classes(name: str, counts: Mapping[int, int]) -> bool:
    """Returns whether few whole numbers that come often are classes; ratings and counts are numbers."""
    rows, values = sum(counts.values()), sorted(counts)
    if len(values) == 2:
        return True
    if not _NUMBER_LABELS.isdisjoint(words_of(name)):
        return False
    in_a_row = values == list(range(values[0], values[0] + len(values))) and values[0] in (0, 1)
    if len(values) <= FEW_VALUES:
        falls = [counts[value] for value in values]
        top = falls.index(max(falls))
        one_peak = falls[:top] == sorted(falls[:top]) and falls[top:] == sorted(falls[top:], reverse=True)
        return not (in_a_row and len(values) > 3 and one_peak and min(falls) < 0.01 * rows)
    return in_a_row and rows >= OFTEN * len(values) and min(counts.values()) >= 0.2 * rows / len(values)
