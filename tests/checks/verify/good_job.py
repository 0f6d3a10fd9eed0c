"""A job's history without a Kafka: the product's own encoders write what a trainer and a predictor would write."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgpack
import numpy as np

from streamtrain._native import CloseReason
from streamtrain.build import build_digest
from streamtrain.compute.model import Model
from streamtrain.job import Job
from streamtrain.job.early_stop import EarlyStop
from streamtrain.origins.topic import TopicOrigin
from streamtrain.run import publication
from streamtrain.run.dead_letters import rejected_letters
from streamtrain.run.kafka_publisher import messages_of
from streamtrain.run.lineage import Lineage, fresh_lineage, imported_lineage, restored_lineage, resumed_lineage
from streamtrain.run.publication import Assembler, adopt
from streamtrain.run.round_log import Columns
from streamtrain.topics import control, dead_letters, predictions, rounds
from streamtrain.topics.chunks import Held, Located
from streamtrain.topics.control import RunEnd, RunEntry
from streamtrain.topics.dead_letters import DeadLetter
from streamtrain.topics.manifest import Imported, Run, Slot
from tests.checks.verify.ingest import Ingest
from tests.checks.verify.topics_in_memory import Admin, Partition, Written

JOB = """
name = "good"
[kafka]
bootstrap.servers = "localhost:9092"
[records]
format = "{format}"
[columns]
x = {{ kind = "number", standardize = true }}
z = {{ kind = "number", missing = {missing} }}
at = {{ role = "event_time", unit = "ms" }}
y = {{ role = "label" }}
[model]
layers = [ {{ dense = 2, activation = "relu" }} ]
[train]
batch_rows = 8
workers = 2
averaging_frequency = 2
[publish]
keep = 4
archive = {{ every = "1s", keep = 2 }}
{early}
"""
FIGURES = ["log_loss", "auc"]
SETTINGS = {"format": "msgpack", "missing": '"skip"', "early": ""}


@dataclass
class GoodJob:
    """The topics written so far, and the trainer that goes on writing."""

    written: Written = field(default_factory=lambda: Written.empty("good", records=2, requests=2, predictions=2))
    clean: bool = False  # good rows alone

    def __post_init__(self) -> None:
        self._runs = 0
        self.located: dict[int, Located] = {}
        self._states: dict[int, Any] = {}
        self._rows = 0
        self.use()
        self.origin = TopicOrigin(self.job, {}, Admin(self.written))

    def use(self, **changes: str) -> None:
        """Another job file from the next start on."""
        self.job = job = Job.parse(JOB.format(**SETTINGS | changes))
        model = Model(job.model_spec())
        self._layout = model.layout.published(job.train.workers)
        self._state = np.zeros(self._layout.state_bytes, np.uint8)
        initial = model.initial_state(0)
        self._state[: len(initial)] = initial

    def row(self, **changes: Any) -> dict[str, Any]:
        self._rows += 1
        return {"x": self._rows / 7, "z": 1.0, "at": 1_700_000_000_000 + self._rows, "y": self._rows % 2, **changes}

    def produce(self, count: int = 12, partitions: Iterable[int] | None = None, bad: bool = True) -> None:
        """Writes single rows to each partition; with `bad` also rows, records and holes of every other kind."""
        if self.clean:
            for index in range(count):
                self.record(self.row(), index % 2)
            return
        for partition in partitions or range(len(self.written.partitions["records"])):
            for index in range(count):
                self.record(self.row(), partition, key=b"k%d" % index)
            if not bad:
                continue
            self.record([self.row(x="bad" if at in (1, 6) else at) for at in range(13)], partition)
            self.record(self.row(x="bad"), partition, key=b"bad")
            self.record(self.row(z=None), partition)
            self.written.append("records", None, b"gone", partition=partition)
            self.written.append("records", b"\xc1 no msgpack", partition=partition)
            self.written.skip("records", 2, partition)
            self.record(self.row(), partition)

    def more(self, count: int = 12, bad: bool = True, partitions: Iterable[int] | None = None, **train: Any) -> None:
        """Records to each partition, and a publication of them."""
        self.produce(count, partitions, bad)
        self.train(**train)

    def record(self, document: Any, partition: int, key: bytes | None = None) -> None:
        self.written.append("records", msgpack.packb(document), key, partition=partition)

    def add_partition(self) -> None:
        self.written.partitions["records"].append(Partition())

    def begin(
        self, restore: int | None = None, fresh: bool = False, accept_gap: bool = False, damaged: str | None = None,
        imports: GoodJob | None = None, positions: str = "beginning",
    ) -> None:  # fmt: skip
        """A run that goes on, or begins a lineage; a fresh one passes over a `damaged` shelf. It may be an import of
        another job's newest snapshot."""
        self._runs += 1
        self.run = Run(self._runs, uuid.uuid4().hex)
        entry = RunEntry(self.run, self.job.name, "host", 100 + self._runs, self.written.clock_ms, build_digest())
        self.written.transaction([("control", control.run_message(entry))])
        slot = Slot(self.job.train.batch_rows, 64)
        self.publisher = Assembler(self.job, self.run, self._layout, slot, build_digest())
        newest = self.located[max(self.located)] if self.located else None
        if imports is not None:
            found = imports.located[max(imports.located)]
            manifest = found.manifest
            of = Imported(imports.job.name, manifest.version, found.digest, manifest.lineage, "far", positions)
            kept = (manifest.positions, manifest.gaps) if positions == "keep" else self.origin.begin()
            self.lineage, self._state = imported_lineage(manifest, of, *kept), imports._state.copy()
        elif newest is None or fresh:
            held = Held() if newest is None else Held.of(newest)
            if damaged is not None:
                held = held.above(held.version + 5)._replace(kept=tuple(k for k in held.kept if k.shelf != damaged))
            self.lineage = fresh_lineage(self.job, self.origin, held)
        elif restore is not None:
            self.lineage = restored_lineage(self.origin, newest, self.located[restore], accept_gap)
            self._state = self._states[restore].copy()
        else:
            self.lineage = resumed_lineage(self.origin, newest, accept_gap)
        if newest is None or fresh or restore is not None:
            self._publish(Columns.empty(), [], self.lineage.round, self.lineage.metrics)
        self._ingest = Ingest(self.job, self.run.number, list(self.lineage.positions), self.lineage.round + 1)

    def train(
        self, closed_by: CloseReason = CloseReason.INTERVAL, rejected: int | None = None, deaths: int = 0,
        scores: Mapping[str, Any] | None = None, held_out: Mapping[str, Any] | None = None, passes: int = 0,
    ) -> None:  # fmt: skip
        """Trains on all records so far, in one publication. `scores`: metrics by which the job may end early."""
        self._ingest.read(self.written.partitions["records"])
        columns, letters = self._ingest.publish(closed_by, rejected)
        letters += rejected_letters(columns, lambda _: self.written.name("records"), self.run.number)
        self._state.view(np.float32)[0] += 0.25
        metrics = {"total": {"log_loss": 0.5, "rows": self.lineage.rows_seen}, "window": {"log_loss": 0.5}}
        if self.job.train.early_stopping is not None:
            rows = self.lineage.rows_seen + int(columns.slots["trained"].sum())
            stop = EarlyStop(self.job.train.early_stopping, FIGURES, held_out)
            metrics |= scores or {}
            at = self.lineage.metrics, metrics, self.lineage.version + 1, rows, self.written.clock_ms + 600, passes
            metrics["early_stopping"] = stop.after(*at)
        self._publish(columns, letters, int(columns.rounds["round"][-1]), metrics, deaths)

    def _publish(self, columns: Columns, letters: list[DeadLetter], last: int, metrics: Any, deaths: int = 0) -> None:
        self.written.clock_ms += 600
        with patch.object(publication, "time", SimpleNamespace(time_ns=lambda: self.written.clock_ms * 1_000_000)):
            made = self.publisher.assemble(self.lineage, self._state, last, columns, metrics, deaths)
        self.assembled = made
        dead = [("dead_letters", dead_letters.message(letter)) for letter in letters]
        messages = messages_of(made, {key: key for key in self.written.partitions})
        offset = self.written.transaction([*dead, *messages])["snapshots"]
        self.lineage: Lineage = adopt(self.lineage, made, offset)
        manifest = made.snapshot.manifest
        self.located[manifest.version] = Located(manifest, made.snapshot.digest, offset)
        self._states[manifest.version] = self._state.copy()

    def end(self, exit_code: int = 0) -> None:
        end = RunEnd(self.run, exit_code, "done", self.written.clock_ms)
        self.written.transaction([("control", control.end_message(end))])

    def predict(self, count: int = 6) -> None:
        """Requests and their answers, one of them an error."""
        located = self.located[max(self.located)]
        for index in range(count):
            partition = index % 2
            asked = (("trace", b"%d" % index),)
            offset = self.written.append("requests", b"[1]", b"r%d" % index, asked, partition)
            body: Any = {"prediction": 0.25}
            headers = [
                *asked,
                (predictions.VERSION_HEADER, b"%d" % located.manifest.version),
                (predictions.DIGEST_HEADER, located.digest.hex().encode()),
                (predictions.PARTITION_HEADER, b"%d" % partition),
                (predictions.OFFSET_HEADER, b"%d" % offset),
            ]
            if index == 3:
                where = f"good.requests[{partition}]@{offset}"
                body = {"error": {"path": "$", "reason": "expected a row", "where": where}}
                headers.append((predictions.ERROR_HEADER, b"$: expected a row"))
            self.written.append("predictions", json.dumps(body).encode(), b"r%d" % index, headers, partition)
        for partition in range(2):
            self.written.skip("predictions", 1, partition)


def imported_job(positions: str = "beginning") -> GoodJob:
    """A history that begins with an import of another's, is trained on, restored and begun anew."""
    other = GoodJob(clean=True)
    other.begin()
    for _ in range(3):
        other.more()
    made = GoodJob(clean=True)
    if positions == "keep":
        made.written.partitions["records"] = deepcopy(other.written.partitions["records"])
    made.begin(imports=other, positions=positions)
    made.end()
    first = max(made.located)
    for start in ({}, {}, {"restore": first + 1}, {"fresh": True}):
        made.begin(**start)
        made.more()
    return made


def good_job() -> GoodJob:
    """Two lineages, five runs, a partition added, a gap accepted, batches left out, every kind of row, predictions."""
    made = GoodJob()
    made.produce()
    made.begin()
    made.train()
    made.more(rejected=1)
    made.more(20, bad=False)
    made.predict()
    made.more(3, closed_by=CloseReason.END, deaths=1)
    made.end()
    made.add_partition()
    made.produce(5)
    made.begin()
    made.train()
    made.predict()
    made.more(4, deaths=2)
    made.produce(4, bad=False)
    made.begin()
    made.train()
    made.end(130)
    made.begin(restore=7)
    for _ in range(3):
        made.more(6, bad=False)
        made.predict()
    made.end()
    made.produce(9, bad=False)
    records = made.written.partitions["records"][2]
    records.remove(records.end - 8)
    made.begin(accept_gap=True)
    for _ in range(2):
        made.train()
        made.predict(2)
        made.produce(4)
    with patch.object(rounds, "MESSAGE_BYTES", 1_700):  # a log in parts
        made.train()
    made.more(4, partitions=[0, 2])
    made.end()
    return made


def clean_job() -> GoodJob:
    """A short history without dead letters and predictions, in which only the fold can find a forgery."""
    made = GoodJob(clean=True)
    for start in ({}, {}, {"restore": 4}):
        made.begin(**start)
        for _ in range(3):
            made.more()
    return made


def compacted(made: GoodJob) -> GoodJob:
    """The same job after compaction."""
    made.written.compact("snapshots")
    made.written.compact("control")
    return made
