"""The loss of a first job, whose file `init` writes for a CSV, over the CSV's rows; and of several workers beside one.

Every row is scored before it is learned. Loss is log loss, or RMSE of a number. Rivals get rows that we decoded.
"""

from __future__ import annotations

import functools
import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler
from slots import RowSlot

from streamtrain.compute.stateful_inputs import BLOCKS
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.reading import read_rows
from streamtrain.job import Job
from tests.bench.bed import STREAMTRAIN, trained
from tests.bench.harness import MOST, Line, Run, Sides, bench, once
from tests.bench.learning_streams import STREAMS, Stream

RIVAL_BATCH_ROWS, RATE, CLIP = 8, 3e-3, 8.0
BATCHES = (1, 4, 8, 32)  # of which the best counts
Array = np.ndarray[Any, Any]


class Decoded(NamedTuple):
    """The rows of a stream: numbers [rows, n], categories [rows, c] as buckets or ids, labels [rows]."""

    numbers: Array
    categories: Array
    label: Array


def decoded(job: Job, records: Sequence[bytes]) -> Decoded:
    """The rows that are trained, without dead letters and rows left out."""
    slot = RowSlot(job.schema, len(records), job.records.format)
    slot.filler.open(slot.slot)
    for record in records:
        slot.filler.fill(record)
    rows = slot.filler.close()
    none = np.zeros((rows, 0), np.float32)
    numbers, buckets, label = (slot.views.get(name, none)[:rows] for name in Decoded._fields)
    hashes = slot.views.get(BLOCKS["hash"][0], none)[:rows]
    ids = [np.unique(hashes[:, column], return_inverse=True)[1] for column in range(hashes.shape[1])]
    return Decoded(numbers, np.column_stack([buckets.astype(np.int64), *ids]), label[:, 0])


def tables_of(job: Job, data: Decoded) -> list[tuple[int, int]]:
    """Rows and columns of the table of each category, in the order of `categories`: hashed ones first."""
    known = [column for _, column in job.schema.columns if column.kind == "category"]
    embeds = [column.embed for vocabulary in (False, True) for column in known if bool(column.vocabulary) == vocabulary]
    return [(int(data.categories[:, at].max()) + 1, embed) for at, embed in enumerate(embeds)]


def pytorch(job: Job, data: Decoded, seed: int, batch_rows: int = RIVAL_BATCH_ROWS) -> float:
    """Mean log loss (RMSE of a number) of the job's own network, Adam 3e-3, running moments, clip 8."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    inputs, kind = job.schema.engine_inputs(), job.schema.label_kind
    sizes = tables_of(job, data)
    tables = torch.nn.ModuleList([torch.nn.Embedding(*size) for size in sizes])
    width, layers = inputs["numbers"] + sum(embed for _, embed in sizes), []
    for layer in job.model.layers:
        layers += [torch.nn.Linear(width, layer["dense"]), torch.nn.ReLU()]
        width = layer["dense"]
    outputs = len(job.schema.class_names) if kind == "class" else 1
    network = torch.nn.Sequential(*layers, torch.nn.Linear(width, outputs))
    losses = {
        "binary": lambda z, y: torch.nn.functional.binary_cross_entropy_with_logits(z[:, 0], y.float()),
        "class": lambda z, y: torch.nn.functional.cross_entropy(z, y.long()),
        "number": lambda z, y: ((z[:, 0] - y) ** 2).mean(),
    }
    optimizer = torch.optim.Adam([*tables.parameters(), *network.parameters()], lr=RATE)
    numbers, labels, mean, deviation = StandardScaler(), StandardScaler(), 0.0, 1.0
    chosen, total = np.array(inputs["standardize"], bool), 0.0
    for at in range(0, len(data.label), batch_rows):
        rows = slice(at, at + batch_rows)
        x, y = data.numbers[rows], data.label[rows]
        scaled = numbers.partial_fit(x.astype(float)).transform(x.astype(float)) if x.size else x
        parts = [torch.from_numpy(np.where(chosen, np.clip(scaled, -CLIP, CLIP), x).astype(np.float32))]
        buckets = torch.from_numpy(data.categories[rows])
        parts += [table(buckets[:, column]) for column, table in enumerate(tables)]
        target = torch.from_numpy(np.asarray((y - mean) / deviation, np.float32))
        loss = losses[kind](network(torch.cat(parts, 1)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y) * deviation**2
        if inputs.get("standardize_label"):
            labels.partial_fit(y[:, None].astype(float))
            mean, deviation = float(labels.mean_[0]), float(labels.scale_[0])
    mean_loss = total / len(data.label)
    return math.sqrt(mean_loss) if kind == "number" else mean_loss


def river(job: Job, data: Decoded) -> float:
    """Mean log loss (RMSE of a number) of River's StandardScaler and linear model, each category's buckets as flags
    beside the numbers. Of a number the best of its linear models counts."""
    from river import linear_model, preprocessing

    names = [f"n{at}" for at in range(data.numbers.shape[1])]
    numbers, categories = data.numbers.astype(float).tolist(), data.categories.tolist()

    def loss_of(model: Any) -> float:
        scaler, total = preprocessing.StandardScaler(), 0.0
        for row, buckets, label in zip(numbers, categories, data.label.tolist(), strict=True):
            x = dict(zip(names, row, strict=True))
            scaler.learn_one(x)
            x = scaler.transform_one(x) | {f"c{at}={bucket}": 1.0 for at, bucket in enumerate(buckets)}
            if job.schema.label_kind == "number":
                total += (model.predict_one(x) - label) ** 2
                model.learn_one(x, label)
            else:
                logit = model._raw_dot_one(x)  # of its probability, which rounds to 0 and 1
                total += float(np.logaddexp(0, -logit if label else logit))
                model.learn_one(x, bool(label))
        return total / len(data.label)

    if job.schema.label_kind != "number":
        return loss_of(linear_model.LogisticRegression())
    found = (linear_model.LinearRegression(intercept_lr=rate) for rate in (0.01, 0.1))
    return math.sqrt(min(map(loss_of, found)))


def vowpal_wabbit(job: Job, data: Decoded) -> float:
    """Mean log loss (RMSE of a number) of vw, the best of three learning rates: numbers as they are, which it scales by
    itself, and buckets as features of their own."""
    from vowpalwabbit import Workspace

    number = job.schema.label_kind == "number"

    def line(row: Array, buckets: Array, label: float) -> str:
        values = " ".join(f"n{at}:{value:.9g}" for at, value in enumerate(row))
        chosen = " ".join(f"c{at}_{bucket}" for at, bucket in enumerate(buckets))
        return f"{label if number else 2 * label - 1} |n {values} |c {chosen}"

    lines = [line(*row) for row in zip(data.numbers, data.categories, data.label.tolist(), strict=True)]

    def loss_of(rate: float) -> float:
        learner = Workspace(f"--loss_function {'squared' if number else 'logistic'} -b 22 --quiet -l {rate}")
        for each in lines:
            learner.learn(each)
        mean = float(learner.get_sum_loss()) / len(lines)  # of each row before it was learned
        learner.finish()
        return math.sqrt(mean) if number else mean

    return min(map(loss_of, (0.1, 0.5, 2.0)))


AVERAGED = ("flights", "elec2", "adult")
WORKERS, BATCH_ROWS = (2, 4, 8), 32  # 4 and 8 are shown
AVERAGING_BAR = 1.02  # of one worker's loss at most, with 2
SHAPE = ('train.batch_growth="off"', "train.averaging_frequency=4")
WAYS: dict[str, tuple[str, ...]] = {   # how W workers make up for the mean, which goes as far as one of them
    "the mean, rate x W": (),
    "the outer step": (
        'train.averaging.name="outer_nesterov"', "train.averaging.rate=1.0", "train.averaging.momentum=0.2",
    ),
}  # fmt: skip


@functools.cache
def first_job(stream: Stream, rows: int) -> tuple[Path, list[bytes]] | None:
    """The job file that `init` writes for the stream's CSV, and its first rows as records; None where its data is
    absent."""
    path = stream.write(Path(tempfile.mkdtemp(prefix="streamtrain-bench-")))
    if path is None:
        return None
    job = path.with_suffix(".toml")
    command = [STREAMTRAIN, "init", job, "--from", path, "--label", stream.label]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found = islice(map(ColumnSelection(Job.load(job).schema).row, read_rows(str(path))), rows or None)
    return job, [json.dumps(row).encode() for row in found]


def loss(figures: dict[str, float], prefix: str = "") -> float:
    return figures[prefix + ("rmse" if "rmse" in figures else "log_loss")]


def absent(stream: Stream, lines: Sequence[str]) -> Sides:
    return dict.fromkeys(lines, f"the data of {stream.name} is not at hand")


def lines_of(stream: Stream) -> list[Line]:
    bars = {"constant": 1.0, **stream.bars}
    lines = [Line(stream.name, "ours", rival, bar, MOST) for rival, bar in bars.items()]
    return lines if stream.most is None else [*lines, Line(f"{stream.name}, bar", "ours", stream.most, 1.0, MOST)]


@bench(
    "learning", {(stream,): lines_of(stream) for stream in STREAMS},
    once, "loss", {"seeds": 1, "rows": 200, "only": "tiny"}, seeds=5, rows=0,
)  # fmt: skip
def learning(run: Run, stream: Stream) -> Sides:
    """The job that `init` writes (median of the seeds), against the constant prediction, the same network in PyTorch,
    and linear models of River and Vowpal Wabbit. `--rows`: the first rows of each stream; 0 takes all."""
    file_and_records = first_job(stream, run.rows)
    if file_and_records is None:
        return absent(stream, ("ours", "constant", *stream.bars))
    file, records = file_and_records
    found = [trained(Job.load(file, sets=[f"train.seed={seed}"]), records) for seed in range(run.seeds)]
    rivals: dict[str, tuple[str, int, Callable[[Job, Decoded, int], float]]] = {
        "PyTorch": ("torch", run.seeds, pytorch),
        "PyTorch, best batch": ("torch", run.seeds, lambda *given: min(pytorch(*given, rows) for rows in BATCHES)),
        "River": ("river", 1, lambda job, data, seed: river(job, data)),
        "Vowpal Wabbit": ("vowpalwabbit", 1, lambda job, data, seed: vowpal_wabbit(job, data)),
    }
    sides: dict[str, Any] = {"ours": statistics.median(map(loss, found)), "constant": loss(found[0], "constant_")}
    for name in stream.bars:
        package, seeds, rival = rivals[name]
        if find_spec(package) is None:
            sides[name] = f"{package} is not installed"
            continue
        job, data = Job.load(file), decoded(Job.load(file), records)
        sides[name] = statistics.median(rival(job, data, seed) for seed in range(seeds))
    return sides


def averaged_lines(stream: str) -> list[Line]:
    lines = []
    for workers in WORKERS:
        name = f"{stream}, {workers} workers"
        bar = AVERAGING_BAR if workers == 2 else None
        lines += [Line(f"{name}, {way}", f"{workers}, {way}", "one worker", bar, MOST) for way in WAYS]
        lines.append(Line(f"{name}, or one with batches as large", f"{workers}, batches", "one worker", None, MOST))
    return lines


@bench(
    "averaging", {(stream,): averaged_lines(stream.name) for stream in STREAMS if stream.name in AVERAGED},
    once, "log loss", {"seeds": 1, "rows": 500, "only": "2 workers"}, seeds=3, rows=60_000,
)  # fmt: skip
def averaging(run: Run, stream: Stream) -> Sides:
    """Several workers beside one, of as many rows: 32 a batch, averaged every 4 batches, by the mean with W times the
    learning rate and by the outer step. Beside them one worker with batches W times as large, which averages
    nothing."""
    file_and_records = first_job(stream, run.rows)
    if file_and_records is None:
        return absent(stream, {side for line in averaged_lines(stream.name) for side in (line.ours, str(line.rival))})
    file, records = file_and_records

    def median_loss(workers: int, sets: Sequence[str] = (), times: int = 1) -> float:
        rate = workers * times * Job.load(file).optimizer.learning_rate
        mine = [*SHAPE, f"train.batch_rows={times * BATCH_ROWS}", f"train.workers={workers}"]
        mine += [f"optimizer.learning_rate={rate}", *sets]
        return statistics.median(
            loss(trained(Job.load(file, sets=[*mine, f"train.seed={seed}"]), records)) for seed in range(run.seeds)
        )

    sides: dict[str, Any] = {"one worker": lambda: median_loss(1)}
    for workers in WORKERS:
        sides[f"{workers}, batches"] = lambda workers=workers: median_loss(1, times=workers)
        for way, sets in WAYS.items():
            sides[f"{workers}, {way}"] = lambda workers=workers, sets=sets: median_loss(workers, sets)
    return sides
