"""A DeepFM of 13 numbers and 26 categories x 16 from Kafka, one msgpack row a record: `streamtrain train` with one
worker, against the same network in PyTorch fed by consume(), decoding and NumPy; each in a process of its own.

The rival has its best form: one table for all categories, SparseAdam for that and fused Adam for the rest, one thread.
It publishes nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from confluent_kafka import Consumer, TopicPartition
from workbench import BATCH_ROWS, Bed, figure, in_turns, kafka_at, spawn, train_rate

from streamtrain.job import Job
from streamtrain.topics.topic import job_topics

SMOKE = ["--seconds", "1", "--turns", "1"]
BAR = 5.0
RECORDS_A_SECOND = 40_000   # of the bench
NUMBERS, CATEGORIES, BUCKETS, WIDTH = 13, 26, 10_000, 16
LAYERS = (64, 32)
JOB_FILE = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records = {{ name = "{records}", partitions = {partitions} }}
[records]
format = "msgpack"
[columns]
"I{{1..13}}" = {{}}
"C{{1..26}}" = {{ kind = "category", buckets = {buckets}, embed = 16 }}
late = {{ role = "label" }}
[model.graph]
linear = {{ dense = 1, of = "input" }}
fields = {{ concat = [{fields}] }}
pairs = {{ factorization = "fields", width = 16 }}
first = {{ dense = 64, activation = "relu", of = "input" }}
second = {{ dense = 32, activation = "relu", of = "first" }}
deep = {{ dense = 1, of = "second" }}
output = {{ add = ["linear", "pairs", "deep"] }}
[optimizer]
name = "adam"
learning_rate = 1e-3
[train]
batch_rows = {batch_rows}
batch_growth = "off"                   # what is timed is full-grown batches
averaging_frequency = 64
[publish]
interval = "10s"
"""


def records(count: int = 4096) -> list[bytes]:
    """A row each: numbers, categories, of which some are far more frequent than others, and a label."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(count, NUMBERS)).astype(np.float32)
    categories = (BUCKETS * random.random((count, CATEGORIES)) ** 3).astype(np.int64)
    label = (numbers[:, 0] + categories[:, 0] % 3 - 1 > 0).astype(np.int64)
    table = zip(numbers.tolist(), categories.tolist(), label.tolist(), strict=True)
    return [msgpack.packb([*x, *its, y], use_single_float=True) for x, its, y in table]


class DeepBed(Bed):
    """A topic of such rows, and jobs that read it."""

    def job(self, **settings: Any) -> Path:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        fields = ", ".join(f'"input.C{at}"' for at in range(1, CATEGORIES + 1))
        path = self.folder / f"{name}.toml"
        path.write_text(JOB_FILE.format(
            name=name, bootstrap=self.bootstrap, records=self.records, partitions=self.partitions, fields=fields,
            buckets=BUCKETS, batch_rows=BATCH_ROWS,
        ))  # fmt: skip
        topics = {key: value.model_dump(exclude_none=True) for key, value in Job.load(path).file.topics.items()}
        self.admin.ensure(job_topics(name, topics))
        return path


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


def _loop(bootstrap: str, topic: str, partitions: int, limit: int, answer: Any) -> None:
    import torch

    torch.set_num_threads(1)
    table, dense, logits = network()
    optimizers = [torch.optim.SparseAdam(table.parameters(), lr=1e-3),
                  torch.optim.Adam(dense.parameters(), lr=1e-3, fused=True)]  # fmt: skip
    loss, offsets = torch.nn.BCEWithLogitsLoss(), torch.arange(CATEGORIES) * BUCKETS
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    done, begun = 0, 0.0
    while done < limit:
        messages = consumer.consume(BATCH_ROWS, 10)
        if not begun:
            begun = time.perf_counter()
        batch = np.array([msgpack.unpackb(each.value()) for each in messages if not each.error()], np.float32)
        rows = torch.from_numpy(batch)
        indexes = rows[:, NUMBERS:-1].long() + offsets
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(logits(rows[:, :NUMBERS], indexes), rows[:, -1]).backward()
        for optimizer in optimizers:
            optimizer.step()
        done += len(batch)
    answer.send((done - BATCH_ROWS) / (time.perf_counter() - begun))
    consumer.close()


def torch_rate(bed: Bed, limit: int) -> float:
    """Rows a second of PyTorch's loop over the bed's first `limit` records."""
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_loop, args=(bed.bootstrap, bed.records, bed.partitions, limit, theirs))
    process.start()
    rate = ours.recv() if ours.poll(300) else 0.0
    process.join(30)
    return float(rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--bootstrap", default=os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP"))
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print(json.dumps({"bench": "DeepFM", "skipped": "PyTorch is not installed; pip install '.[bench]'"}))
        return
    with kafka_at(options.bootstrap) as bootstrap:
        bed = DeepBed(bootstrap)
        bed.fill(int(RECORDS_A_SECOND * options.seconds), records())
        sides = {"ours": lambda: train_rate(bed, bed.job()), "torch": lambda: torch_rate(bed, bed.count // 8)}
        found = in_turns(sides, options.turns)
        figure("DeepFM 26 x 16 from Kafka / PyTorch", round(found["ours"]), round(found["torch"]), BAR, "rows/s")


if __name__ == "__main__":
    main()
