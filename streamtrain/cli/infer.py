"""A job file's text from sample rows: what each column is, how large its table, what the label asks for, and why."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from streamtrain.cli.sampled import Row, Sampled, flattened
from streamtrain.columns.column import Column
from streamtrain.columns.formats import format_names
from streamtrain.columns.formats.sparse_text import TAG, WEIGHT
from streamtrain.columns.kinds.audio import WINDOW_S
from streamtrain.columns.kinds.kind import SKIP, SKIP_HEAD
from streamtrain.columns.mel import bands_of
from streamtrain.columns.sound_meaning import Head
from streamtrain.errors import UserMistake

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
MOST_CLASSES = 1_000
MOST_WHOLE_CLASSES = 10  # distinct whole numbers of a label that are taken for classes
MANY_CLASSES = 16  # from which on a larger network learns more: of 30 and 100 by a sixth and a tenth in 3,000 rows
SPARSE_RATE = "2e-2"  # beside a network
PAIRS_RATE, PAIRS_RATE_OF_A_NUMBER = "0.5", "0.2"  # alone
LEAST_SPARSE = 1 << 18  # indexes: what vw -b is by default
PICTURE_RATE, PICTURE_SIDE = "3e-4", 64
CLIP_BANDS = (64, 32, 16, 8)
LONGEST_CLIP_S = 10.0  # 998 frames of 64 bands are near the most numbers there may be
WIDE_INPUT = 256  # columns of the input matrix from which on steps are smaller


@dataclass(frozen=True)
class Machine:
    """What trains: `devices` GPUs that answer, 0 for the CPU."""

    devices: int = 0


@dataclass
class Found:
    """What was made of the sample: lines of [columns], what is worth saying, and how wide the input is."""

    lines: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    losses: dict[str, str] = field(default_factory=dict)  # by label
    classes: int = 0  # of the label that has the most
    width: int = 0
    features: int = 0
    event_time: str = ""
    points: int = 0  # of pictures, among the input's columns
    sparse: int = 0  # columns that are no part of the input
    weight: str = ""  # the column that is one
    paths: dict[str, str] = field(default_factory=dict)  # of columns that stand inside of others

    def declare(self, name: str, settings: str, why: str = "") -> None:
        path = f"path = {json.dumps(self.paths[name], ensure_ascii=False)}, " if name in self.paths else ""
        self.lines.append(f"{_key(name)} = {{ {path}{settings} }}{f'   # {why}' if why else ''}")

    def leave_out(self, name: str, why: str) -> None:
        self.lines.append(f"# {_key(name)}: {why}; left out")

    def tell(self, text: str) -> str:
        """`text`, which the command says too."""
        self.told.append(text)
        return text


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 1).bit_length()


def _unusable(column: Sampled) -> str:
    """Why a column cannot be a feature; empty where it can."""
    if not column.name or "{" in column.name or "}" in column.name:
        return "a name that is empty or has braces cannot stand in a job file"
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
        return "not a number or a text"
    return ""


def _feature(found: Found, column: Sampled) -> None:
    """One line of [columns]; a comment where the column does not look like a feature."""
    if not column.nested and not column.constant and column.time is not None:
        return _time(found, column, *column.time)
    if column.name == found.weight and column.values:
        return found.declare(column.name, 'role = "weight", missing = 1')
    if column.elements:
        return _list(found, column)
    if column.pairs:
        return _pairs(found, column)
    if column.picture:
        return _picture(found, column, *column.picture)
    if column.clips:
        return _clip(found, column, column.clips)
    if why := _unusable(column):
        return found.leave_out(column.name, why)
    if column.numeric and not column.boolean and not column.coded:
        missing = ", missing = 0" if column.missing else ""
        found.declare(column.name, f'kind = "number", standardize = true{missing}')
        found.width += 1
    else:
        distinct = len(column.distinct)
        if column.prose:
            return _text(found, column)
        if distinct > 20 and distinct > 0.9 * len(column.values):
            return found.leave_out(column.name, "nearly every row has another text")
        buckets, embed = _power_of_two(max(16, 2 * distinct)), max(2, min(16, round(math.sqrt(distinct))))
        missing = ', missing = ""' if column.missing else ""
        why = "digits that are no number" if column.coded else ""
        found.declare(column.name, f'kind = "category", buckets = {buckets}, embed = {embed}{missing}', why)
        found.width += embed
    found.features += 1


def _list(found: Found, column: Sampled) -> None:
    """Fractions of one length are a vector, else a list is of categories."""
    sizes = [len(cell) for cell in column.values]
    if len(set(sizes)) == 1 and any(isinstance(each, float) for each in column.elements):
        missing = ", missing = 0" if column.missing else ""
        why = f"lists of {sizes[0]} numbers"
        found.declare(column.name, f'kind = "vector", size = {sizes[0]}, standardize = true{missing}', why)
        found.width += sizes[0]
    else:
        distinct, most = len(set(map(str, column.elements))), _power_of_two(max(16, 2 * max(sizes)))
        buckets, embed = _power_of_two(max(16, 2 * distinct)), max(2, min(16, round(math.sqrt(distinct))))
        settings = f'kind = "category", list = true, buckets = {buckets}, embed = {embed}, most = {most}, cut = true'
        missing = ', missing = ""' if column.missing else ""
        why = f"lists of up to {max(sizes)}, {distinct} of {len(column.elements)} entries differ"
        found.declare(column.name, settings + missing, why)
        found.width += embed
    found.features += 1


def _picture(found: Found, column: Sampled, height: int, width: int) -> None:
    """Large ones are brought to a size that a dense network can hold."""
    longest = max(height, width, PICTURE_SIDE)
    size = [max(1, round(side * PICTURE_SIDE / longest)) for side in (height, width)]
    missing = ", missing = 128" if column.missing else ""
    why = f"pictures, most of them of {height} x {width} points; needs the extra images"
    found.declare(column.name, f'kind = "image", size = {size}{missing}', why)
    found.points += size[0] * size[1] * 3
    found.features += 1


def _clip(found: Found, column: Sampled, heads: list[Head]) -> None:
    """Energies by bands of the longest; another rate than most have is none of them."""
    rates = Counter(rate for rate, _, _ in heads)
    rate, times = rates.most_common(1)[0]
    longest = max(count for of, _, count in heads if of == rate) / rate
    seconds = min(LONGEST_CLIP_S, max(math.ceil(100 * longest) / 100, WINDOW_S))
    window = round(WINDOW_S * rate)
    mel = next((bands for bands in CLIP_BANDS if not bands_of(rate, window, bands).empty), 1)
    missing = ", missing = 0" if column.missing else ""
    why = f"sound, {times} of {len(heads)} of {rate} samples a second, up to {longest:.3g} s; needs the extra audio"
    settings = f'kind = "audio", rate = {rate}, seconds = {seconds}, features = {{ mel = {mel} }}, standardize = true'
    found.declare(column.name, settings + missing, why)
    made = Column.model_validate({"kind": "audio", "rate": rate, "seconds": seconds, "features": {"mel": mel}})
    found.width += made.sound.width
    found.features += 1


def _text(found: Found, column: Sampled) -> None:
    """Its words and those that follow each other."""
    most, missing = _power_of_two(max(64, 4 * column.prose)), ', missing = ""' if column.missing else ""
    settings = f'kind = "text", ngrams = [1, 2], buckets = {LEAST_SPARSE}, embed = 8, most = {most}, cut = true'
    found.declare(column.name, settings + missing, f"texts of up to {column.prose} words")
    found.width += 8
    found.features += 1


def _pairs(found: Found, column: Sampled) -> None:
    """Of an index, or a name, and a number."""
    keys, most = [key for key, _ in column.pairs], max(len(cell) for cell in column.values)
    highest = max((key for key in keys if isinstance(key, int)), default=0)
    buckets = max(_power_of_two(highest + 1), LEAST_SPARSE)
    room = _power_of_two(max(64, 2 * most))
    settings = f'kind = "sparse", buckets = {buckets}, most = {room}, cut = true'
    found.declare(column.name, settings, f"up to {most} pairs, {len(set(map(str, keys)))} of {len(keys)} keys differ")
    found.sparse += 1
    found.features += 1


def _time(found: Found, column: Sampled, what: str, unit: str) -> None:
    if found.event_time:
        return found.leave_out(column.name, f"{what}; {found.event_time} is the event time")
    found.event_time = column.name
    skip = ', missing = "skip"' if column.missing else ""
    sent = "" if what.startswith("unix") else "; `produce` sends milliseconds, so must your program"
    found.declare(column.name, f'role = "event_time", unit = "{unit}"{skip}', f"{what}{sent}")


def _label(found: Found, column: Sampled, several: bool) -> None:
    """A label's line, and the loss it asks for."""
    name, skip = column.name, f', missing = "{SKIP_HEAD if several else SKIP}"' if column.missing else ""
    if not column.values or not column.flat:
        raise UserMistake(f"--label {name}: expected numbers or texts in the sample, found neither")
    distinct = column.distinct
    if len(distinct) < 2:
        raise UserMistake(f"--label {name}: expected at least two values in the sample, found only {distinct[0]!r}")
    if column.numeric and not column.coded:
        if {float(value) for value in column.values} <= {0.0, 1.0}:
            found.losses[name] = "binary_cross_entropy"
            found.declare(name, f'role = "label"{skip}')
            return
        wholes = sorted(set(column.wholes or []))
        if not 2 <= len(wholes) <= MOST_WHOLE_CLASSES:
            found.losses[name] = "mean_squared_error"
            found.declare(name, f'role = "label", standardize = true{skip}')
            return
        distinct = [str(whole) for whole in wholes]
        found.lines.append(
            f"# {found.tell(f'{name} has {len(wholes)} whole numbers in the sample and is taken for classes')}; to "
            f'predict it as a number: {{ role = "label", standardize = true }}, and loss = "mean_squared_error"'
        )
    if len(distinct) > MOST_CLASSES:
        raise UserMistake(
            f"--label {name}: expected numbers or at most {MOST_CLASSES} classes, found {len(distinct)} texts"
        )
    found.classes = max(found.classes, len(distinct))
    classes = ", ".join(json.dumps(str(value), ensure_ascii=False) for value in distinct)
    found.losses[name] = "binary_cross_entropy" if len(distinct) == 2 else "softmax_cross_entropy"
    found.declare(name, f'role = "label", classes = [{classes}]{skip}')


def _of_rows(sample: str, rows: Sequence[Row], labels: Sequence[str], weight: str) -> Found:
    if not rows:
        raise UserMistake(f"{sample}: expected rows, found none")
    rows, paths = flattened(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    labels = [next((name for name, path in paths.items() if path == label), label) for label in dict.fromkeys(labels)]
    for label in labels:
        if label not in names:
            raise UserMistake(f"--label: expected a column of {sample}, one of {', '.join(names)}; got {label!r}")
    found = Found(paths=paths, weight=weight)
    for name in names:
        if weight and name == TAG:
            found.lines.append("# tag = { role = \"key\", path = \"tag\" }     # a line's tag as its message's key")
        elif name not in labels:
            _feature(found, Sampled.of(rows, name))
    if not found.features:
        told = "; ".join(line.removeprefix("# ") for line in found.lines) or "there is no other column"
        raise UserMistake(f"{sample}: expected a column to learn {', '.join(labels)} from, found none: {told}")
    for label in labels:
        _label(found, Sampled.of(rows, label), len(labels) > 1)
    return found


def _minimised(found: Found) -> str:
    """The loss, or the heads, behind the layers."""
    if len(found.losses) == 1:
        (loss,) = found.losses.values()
        return f'loss = "{loss}"\n'
    heads = [f'\n[model.heads.{_key(label)}]\nloss = "{loss}"\nweight = 1.0\n' for label, loss in found.losses.items()]
    return "".join(["# a head for each label; the network learns from the sum of their losses times weight\n", *heads])


def _network(found: Found) -> tuple[tuple[int, int], str]:
    """The units of two layers, and why.

    Neither the input's width nor the sample's rows choose: on 17 streams of 1 to 400 input columns, cut at 500, 3,000
    and 20,000 rows, 64 and 32 were the best of five sizes or mostly within a few percent of it (tests.bench learning
    --set model.layers=…), but not where the classes are many.
    """
    if found.classes >= MANY_CLASSES:
        return (128, 64), f"Two larger layers: {found.classes} classes have to be told apart"
    return (64, 32), "Two small layers: with one column as with 400, larger ones seldom learned more"


def _layers(found: Found) -> tuple[str, str]:
    """The model's, and why."""
    if not found.width + found.points:
        return "[]", "Pairs alone are a linear model"
    (first, second), why = _network(found)
    return f'[ {{ dense = {first}, activation = "relu" }}, {{ dense = {second}, activation = "relu" }} ]', why


def _optimizer(found: Found) -> tuple[str, str, str]:
    """The optimizer, its learning rate, and why.

    A linear model of pairs: with AdaGrad at 0.5, log loss in one pass over Reuters, Adult and flights as text of VW was
    0.369, 0.327 and 0.270; with Adam at 2e-2, the best of its rates, 0.497, 0.333 and 0.268. A squared error over
    Reuters, its labels -1 and 1, was 0.675 at 0.5, 0.500 at 0.2 (Adam 0.553).
    """
    if found.sparse and not found.width + found.points:
        rate = PAIRS_RATE_OF_A_NUMBER if {*found.losses.values()} == {"mean_squared_error"} else PAIRS_RATE
        return "adagrad", rate, "an index takes smaller steps the more it was seen; many are rare"
    return "adam", *_rate(found)


def _rate(found: Found) -> tuple[str, str]:
    """Adam's learning rate, and why."""
    if found.sparse:
        return SPARSE_RATE, "large: of the pairs' weights few are touched at a time"
    if found.points:
        return PICTURE_RATE, f"small: {found.points} numbers of pictures move together"
    if found.width > WIDE_INPUT:
        return "1e-3", f"small: the input is {found.width} wide"
    return "2e-3", "suits small batches"


def job_text(
    job: str, sample: str, rows: Sequence[Row], labels: Sequence[str], bootstrap: str,
    machine: Machine | None = None, records: str = "json",
) -> tuple[str, list[str]]:
    """A commented job file for rows like these, and what should be said of it.

    Raises UserMistake where the rows or a label cannot be used.
    """
    found, devices = _of_rows(sample, rows, labels, "" if records == "json" else WEIGHT), (machine or Machine()).devices
    columns = "\n".join(found.lines)
    job_name = re.sub(r"[^A-Za-z0-9._-]", "-", job) or "job"
    (optimizer, rate, why_rate), (layers, why_size) = _optimizer(found), _layers(found)
    workers, why_workers = (
        (devices, "a device each") if devices else (1, "learns most from the same rows; with W, learning_rate x W")
    )
    if workers > 1:
        rate, why_rate = f"{float(rate) * workers:g}", f"{why_rate}; times {workers}, as workers are averaged"
    return f'''name = {json.dumps(job_name)}

[kafka]                                # any librdkafka property
bootstrap.servers = {json.dumps(bootstrap)}

[records]
format = {json.dumps(records):<30}# {' | '.join(format_names())}
start = "earliest"                     # holds for the first start only

# As found in {len(rows)} rows of the sample. missing: "dead_letter" (default), "skip", or a value.
[columns]
{columns}

# The input matrix has {found.width + found.points} columns. {why_size}; [] is the linear model.
[model]
layers = {layers}
{_minimised(found)}
[optimizer]
name = "{optimizer}"
learning_rate = {rate:<23}# {why_rate}

[train]
batch_rows = 256                       # once full-grown
batch_growth = 4000                    # a row more for so many seen: a short stream needs many updates
workers = {workers:<29}# {why_workers}
averaging_frequency = 4                # batches per worker in a round
round_interval = "250ms"               # or "off"

[publish]
interval = "1s"
keep = 8                               # newest snapshots kept in the topic
''', found.told
