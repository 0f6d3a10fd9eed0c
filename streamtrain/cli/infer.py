"""A job file's text from sample rows: what each column is, how large its table, what the label asks for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamtrain.errors import UserMistake

Row = dict[str, Any]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
MOST_CLASSES = 1_000


@dataclass
class _Seen:
    """What a column's cells look like."""

    values: list[Any]  # not missing
    missing: int

    @property
    def numeric(self) -> bool:
        return bool(self.values) and all(map(_is_number, self.values))

    @property
    def boolean(self) -> bool:
        return any(isinstance(value, bool) for value in self.values)

    @property
    def flat(self) -> bool:
        return all(isinstance(value, str | int | float | bool) for value in self.values)

    @property
    def distinct(self) -> list[Any]:
        return sorted(set(self.values), key=str)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | int):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) and _NUMBER.fullmatch(value.strip()) is not None


def _seen(rows: Sequence[Row], name: str) -> _Seen:
    cells = [row.get(name) for row in rows]
    values = [cell for cell in cells if cell is not None and cell != "" and cell == cell]
    return _Seen(values, len(cells) - len(values))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 1).bit_length()


def _feature(name: str, seen: _Seen, rows: int) -> str:
    """One line of [columns]; a comment where the column does not look like a feature."""
    key = _key(name)
    if not seen.values:
        return f"# {key}: empty in the sample"
    if not seen.flat:
        return f"# {key}: not a number or a text"
    if seen.numeric and not seen.boolean:
        missing = ", missing = 0" if seen.missing else ""
        return f'{key} = {{ kind = "number", standardize = true{missing} }}'
    distinct = len(seen.distinct)
    if distinct > 20 and distinct > 0.9 * len(seen.values):
        return f"# {key}: nearly every row has another text; left out"
    buckets = _power_of_two(max(16, 2 * distinct))
    embed = max(2, min(16, round(math.sqrt(distinct))))
    missing = ', missing = ""' if seen.missing else ""
    return f'{key} = {{ kind = "category", buckets = {buckets}, embed = {embed}{missing} }}'


def _label(name: str, seen: _Seen) -> tuple[str, str]:
    """The label's line and the loss it asks for."""
    key, skip = _key(name), ', missing = "skip"' if seen.missing else ""
    if not seen.values or not seen.flat:
        raise UserMistake(f"--label {name}: expected numbers or texts in the sample, found neither")
    distinct = seen.distinct
    if len(distinct) < 2:
        raise UserMistake(f"--label {name}: expected at least two values in the sample, found only {distinct[0]!r}")
    if seen.numeric:
        numbers = {float(value) for value in seen.values}
        if numbers <= {0.0, 1.0}:
            return f'{key} = {{ role = "label"{skip} }}', "binary_cross_entropy"
        return f'{key} = {{ role = "label", standardize = true{skip} }}', "mean_squared_error"
    if len(distinct) > MOST_CLASSES:
        raise UserMistake(
            f"--label {name}: expected numbers or at most {MOST_CLASSES} classes, found {len(distinct)} texts"
        )
    classes = ", ".join(json.dumps(str(value), ensure_ascii=False) for value in distinct)
    loss = "binary_cross_entropy" if len(distinct) == 2 else "softmax_cross_entropy"
    return f'{key} = {{ role = "label", classes = [{classes}]{skip} }}', loss


def job_text(job: str, sample: str, rows: Sequence[Row], label: str, bootstrap: str) -> str:
    """A commented job file for rows like these. Raises UserMistake where they or the label cannot be used."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        raise UserMistake(f"{sample}: expected rows, found none")
    if label not in names:
        raise UserMistake(f"--label: expected a column of {sample}, one of {', '.join(names)}; got {label!r}")
    label_line, loss = _label(label, _seen(rows, label))
    features = "\n".join(_feature(name, _seen(rows, name), len(rows)) for name in names if name != label)
    job_name = re.sub(r"[^A-Za-z0-9._-]", "-", job) or "job"
    return f'''name = {json.dumps(job_name)}

[kafka]                                # any librdkafka property
bootstrap.servers = {json.dumps(bootstrap)}

[records]
format = "json"                        # json | msgpack | packed
start = "earliest"                     # holds for the first start only

# As found in {len(rows)} rows of the sample. missing: "dead_letter" (default), "skip", or a value.
[columns]
{features}
{label_line}

[model]
layers = [ {{ dense = 64, activation = "relu" }}, {{ dense = 32, activation = "relu" }} ]   # [] is the linear model
loss = "{loss}"

[optimizer]
name = "adam"
learning_rate = 3e-3

[train]
batch_rows = 256
workers = 1
averaging_frequency = 4                # steps per worker between two averagings
round_interval = "250ms"               # or "off"

[publish]
interval = "1s"
keep = 8                               # newest snapshots kept in the topic
'''
