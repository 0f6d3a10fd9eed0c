"""A DeepFM of 13 numbers and 26 categories x 16 from Kafka, one msgpack row a record, against the same network in
PyTorch fed by consume(), decoding and NumPy; each in a process of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

from tests.bench.bed import Bed, python_rate, train_rate
from tests.bench.harness import Line, Run, Sides, bench, in_turns

RECORDS_A_SECOND = 40_000   # of the bench
NUMBERS, CATEGORIES, BUCKETS, WIDTH = 13, 26, 10_000, 16
LAYERS = (64, 32)
COLUMNS = f"""
"I{{1..13}}" = {{}}
"C{{1..26}}" = {{ kind = "category", buckets = {BUCKETS}, embed = 16 }}
late = {{ role = "label" }}
"""
MODEL = f"""
[model.graph]
linear = {{ dense = 1, of = "input" }}
fields = {{ concat = [{", ".join(f'"input.C{at}"' for at in range(1, CATEGORIES + 1))}] }}
pairs = {{ factorization = "fields", width = 16 }}
first = {{ dense = 64, activation = "relu", of = "input" }}
second = {{ dense = 32, activation = "relu", of = "first" }}
deep = {{ dense = 1, of = "second" }}
output = {{ add = ["linear", "pairs", "deep"] }}
"""


def records(count: int = 4096) -> list[bytes]:
    """A row each: numbers, categories, of which some are far more frequent than others, and a label."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(count, NUMBERS)).astype(np.float32)
    categories = (BUCKETS * random.random((count, CATEGORIES)) ** 3).astype(np.int64)
    label = (numbers[:, 0] + categories[:, 0] % 3 - 1 > 0).astype(np.int64)
    table = zip(numbers.tolist(), categories.tolist(), label.tolist(), strict=True)
    return [msgpack.packb([*x, *its, y], use_single_float=True) for x, its, y in table]


def network() -> tuple[Any, Any, Any]:
    """In PyTorch: the table, the rest, and logits of (numbers, indexes) by both."""
    import torch
    from torch import nn

    table = nn.Embedding(CATEGORIES * BUCKETS, WIDTH, sparse=True)
    inputs = NUMBERS + CATEGORIES * WIDTH
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise([inputs, *LAYERS]):
        parts += [nn.Linear(before, after), nn.ReLU()]
    dense = nn.ModuleDict({"linear": nn.Linear(inputs, 1), "deep": nn.Sequential(*parts, nn.Linear(LAYERS[-1], 1))})

    def logits(numbers: Any, indexes: Any) -> Any:
        factors = table(indexes)
        x = torch.cat([numbers, factors.flatten(1)], 1)
        pairs = (factors.sum(1).square() - factors.square().sum(1)).sum(1, keepdim=True) / 2
        return (dense["linear"](x) + pairs + dense["deep"](x))[:, 0]

    return table, dense, logits


def learner() -> Callable[[np.ndarray[Any, Any]], None]:
    """One batch in PyTorch's best form: one table, SparseAdam for it and fused Adam for the rest, one thread."""
    import torch

    torch.set_num_threads(1)
    table, dense, logits = network()
    optimizers = [torch.optim.SparseAdam(table.parameters(), lr=1e-3),
                  torch.optim.Adam(dense.parameters(), lr=1e-3, fused=True)]  # fmt: skip
    loss, offsets = torch.nn.BCEWithLogitsLoss(), torch.arange(CATEGORIES) * BUCKETS

    def learn(batch: np.ndarray[Any, Any]) -> None:
        rows = torch.from_numpy(batch)
        indexes = rows[:, NUMBERS:-1].long() + offsets
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(logits(rows[:, :NUMBERS], indexes), rows[:, -1]).backward()
        for optimizer in optimizers:
            optimizer.step()

    return learn


@bench(
    "deepfm", [Line("26 x 16 from Kafka", "train", "PyTorch", 5.0)],
    in_turns, "rows/s", needs=("torch",), seconds=20.0, turns=3,
)  # fmt: skip
def deepfm(run: Run) -> Sides:
    """`streamtrain train` of a DeepFM with one worker, against the network in PyTorch, which publishes nothing."""
    bed = Bed(run.kafka, columns=COLUMNS, model=MODEL, train="averaging_frequency = 64", publish_interval="10s")
    bed.fill(int(RECORDS_A_SECOND * run.seconds), records())
    return {
        "train": lambda: train_rate(bed, bed.job()), "PyTorch": lambda: python_rate(bed, bed.count // 8, learner)
    }
