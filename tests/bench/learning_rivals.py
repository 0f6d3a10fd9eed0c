"""What a first job is measured against, on the rows as the product's decoder gives them: the same network in PyTorch
by small batches, and River's linear model row by row. Every row is scored before it is learned, no score is clipped.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from slots import aligned_bytes, slot_views

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.job import Job

BATCH_ROWS, RATE, CLIP = 8, 3e-3, 8.0
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Decoded:
    """All rows of a stream: numbers [rows, n], categories [rows, c] as buckets, labels [rows]."""

    numbers: Array
    categories: Array
    label: Array


def decoded(job: Job, records: Sequence[bytes]) -> Decoded:
    """The rows that are trained; what is a dead letter, or left out, is not among them."""
    layout = _native.SlotLayout.make(len(records), 1, job.schema.block_specs())
    slot = aligned_bytes(layout.slot_bytes)
    filler = _native.BatchFiller(job.records.format, native_plan(job.schema, layout))
    filler.open(slot)
    for record in records:
        filler.fill(record)
    rows = filler.close()
    blocks = {name: view[:rows].copy() for name, view in slot_views(layout, slot).items()}
    none = np.zeros((rows, 0), np.float32)
    categories = blocks.get("categories", none.astype(np.int64)).astype(np.int64)
    return Decoded(blocks.get("numbers", none), categories, blocks["label"][:, 0])


class Moments:
    """Running mean and deviation of columns (Welford), a batch at a time."""

    def __init__(self, columns: int) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(columns), np.zeros(columns)

    def add(self, x: Array) -> None:
        for row in x.astype(np.float64):
            self.count += 1
            delta = row - self.mean
            self.mean += delta / self.count
            self.squares += delta * (row - self.mean)

    def deviation(self) -> Array:
        deviation = np.sqrt(self.squares / max(self.count, 1))
        return np.where(deviation > 0, deviation, 1.0)


def pytorch(job: Job, data: Decoded, seed: int) -> float:
    """Mean log loss (RMSE of a number) of the job's own network, batches of 8, Adam 3e-3, running moments, clip 8."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    inputs, kind = job.schema.engine_inputs(), job.schema.label_kind
    tables = torch.nn.ModuleList([torch.nn.Embedding(c["buckets"], c["embed"]) for c in inputs["categories"]])
    width, layers = inputs["numbers"] + sum(c["embed"] for c in inputs["categories"]), []
    for layer in job.model.layers:
        layers += [torch.nn.Linear(width, layer["dense"]), torch.nn.ReLU()]
        width = layer["dense"]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(width, job.schema.class_count if kind == "class" else 1))
    losses = {
        "binary": lambda z, y: torch.nn.functional.binary_cross_entropy_with_logits(z[:, 0], y.float()),
        "class": lambda z, y: torch.nn.functional.cross_entropy(z, y.long()),
        "number": lambda z, y: ((z[:, 0] - y) ** 2).mean(),
    }
    optimizer = torch.optim.Adam([*tables.parameters(), *network.parameters()], lr=RATE)
    numbers, labels = Moments(inputs["numbers"]), Moments(1)
    chosen, total = np.array(inputs["standardize"], bool), 0.0
    for at in range(0, len(data.label), BATCH_ROWS):
        rows = slice(at, at + BATCH_ROWS)
        x, y = data.numbers[rows], data.label[rows]
        numbers.add(x)
        scaled = np.clip((x - numbers.mean) / numbers.deviation(), -CLIP, CLIP)
        parts = [torch.from_numpy(np.where(chosen, scaled, x).astype(np.float32))]
        buckets = torch.from_numpy(data.categories[rows])
        parts += [table(buckets[:, column]) for column, table in enumerate(tables)]
        mean, deviation = (labels.mean, labels.deviation()) if inputs.get("standardize_label") else (0.0, 1.0)
        wanted = torch.from_numpy(np.asarray((y - mean) / deviation, np.float32))
        loss = losses[kind](network(torch.cat(parts, 1)), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y) * float(np.square(deviation).item() if kind == "number" else 1)
        labels.add(y[:, None])
    mean_loss = total / len(data.label)
    return math.sqrt(mean_loss) if kind == "number" else mean_loss


def river(job: Job, data: Decoded) -> float:
    """Mean log loss of River's StandardScaler | LogisticRegression, each category's buckets as flags beside it."""
    from river import linear_model, preprocessing

    scaler, model, total = preprocessing.StandardScaler(), linear_model.LogisticRegression(), 0.0
    names = [f"n{at}" for at in range(data.numbers.shape[1])]
    numbers, categories = data.numbers.astype(float).tolist(), data.categories.tolist()
    for row, buckets, label in zip(numbers, categories, data.label.tolist(), strict=True):
        x = dict(zip(names, row, strict=True))
        scaler.learn_one(x)
        x = scaler.transform_one(x) | {f"c{at}={bucket}": 1.0 for at, bucket in enumerate(buckets)}
        logit = model._raw_dot_one(x)   # of its probability, which rounds to 0 and 1
        total += float(np.logaddexp(0, -logit if label else logit))
        model.learn_one(x, bool(label))
    return total / len(data.label)
