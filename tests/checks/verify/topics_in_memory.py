"""Topics in memory as `verify` reads them, and the job whose topics they are: trained by a slow ingest of its own, with
everything that a history can have."""

from __future__ import annotations

import json
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgpack
import numpy as np
import pytest

from streamtrain import _native
from streamtrain._native import CloseReason
from streamtrain.build import build_digest
from streamtrain.checks.verify import window_check as checked_windows
from streamtrain.checks.verify.topics import ReadTopics
from streamtrain.compute.model import Model
from streamtrain.job import Job
from streamtrain.job.early_stop import EarlyStop
from streamtrain.kafka.admin import TopicState
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Topic
from streamtrain.record_sources.topic_source import TopicRecordSource
from streamtrain.run import publication
from streamtrain.run.kafka_publisher import messages_of
from streamtrain.run.lineage import Lineage, fresh_lineage, imported_lineage, restored_lineage, resumed_lineage
from streamtrain.run.publication import Assembled, Assembler, adopt
from streamtrain.run.round_log import Columns
from streamtrain.run.unpublished_dead_letters import rejected_letters
from streamtrain.topics import control, dead_letters, predictions, rounds
from streamtrain.topics.chunks import Located, TopicContents
from streamtrain.topics.control import RunEnd, RunEntry
from streamtrain.topics.dead_letters import DeadLetter, DeadRange
from streamtrain.topics.manifest import Imported, Position, Run, Slot
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from streamtrain.topics.topic import Message as Sent
from streamtrain.topics.topic import topic, topics_of

BEGAN_MS = 1_750_000_000_000


@dataclass
class Partition:
    """A partition whose messages are all at hand, in offset order."""

    low: int = 0
    end: int = 0
    messages: list[Message] = field(default_factory=list)

    def read(self, begin: int, end: int) -> Iterator[Message]:
        at = bisect_left(self.messages, begin, key=lambda message: message.offset)
        while at < len(self.messages) and self.messages[at].offset < end:
            yield self.messages[at]
            at += 1

    def remove(self, offset: int) -> None:
        """Removes messages before `offset`, as retention does."""
        self.low = offset
        self.messages = [message for message in self.messages if message.offset >= offset]


Listed = Partition


@dataclass
class Written:
    """Every topic by key; `clock_ms` goes on with each message."""

    job: str
    partitions: dict[str, list[Partition]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    clock_ms: int = BEGAN_MS

    @classmethod
    def empty(cls, job: str, **counts: int) -> Written:
        """One partition a topic unless `counts` says otherwise."""
        partitions = {key: [Partition() for _ in range(counts.get(key, 1))] for key in topics_of("one")}
        return cls(job, partitions, {key: f"{key}-topic-id" for key in partitions})

    def name(self, key: str) -> str:
        return topic(key).name(self.job)

    def append(
        self, key: str, value: bytes | None, message_key: bytes | None = None,
        headers: Iterable[tuple[str, bytes]] = (), partition: int = 0,
    ) -> int:  # fmt: skip
        at = self.partitions[key][partition]
        self.clock_ms += 1
        message = Message(partition, at.end, self.clock_ms, message_key, value, list(headers), 0, "")
        at.messages.append(message)
        at.end += 1
        return message.offset

    def skip(self, key: str, count: int = 1, partition: int = 0) -> None:
        """Offsets that no reader sees: a marker, an aborted transaction."""
        self.partitions[key][partition].end += count

    def transaction(self, messages: Iterable[tuple[str, Sent]]) -> dict[str, int]:
        """Writes them and the markers; gives the last offset of each topic key."""
        last: dict[str, int] = {}
        for key, message in messages:
            value = None if message.value is None else bytes(message.value)
            last[key] = self.append(key, value, message.key, message.headers)
        for key in last:
            self.skip(key)
        return last

    def compact(self, key: str) -> None:
        """Leaves the newest message of each key, tombstones away."""
        for partition in self.partitions[key]:
            newest = {message.key: message for message in partition.messages}
            last = [message for message in partition.messages if newest[message.key] is message]
            partition.messages = [message for message in last if message.value is not None]

    def topics(self, exactly_once: bool = True) -> ReadTopics:
        """Returns them as a verification reads them, a minute after."""
        found = {key: Topic(self.name(key), self.topic_ids[key], each) for key, each in self.partitions.items()}
        end, now_ms = self.partitions["control"][0].end, self.clock_ms + 60_000
        return ReadTopics(job=self.job, control_end=end, looked_ms=now_ms, exactly_once=exactly_once, **found)


@dataclass
class Admin:
    """Kafka's administration as a start asks it, answered from the lists."""

    written: Written

    def _partitions(self, name: str) -> list[Partition]:
        return next(found for key, found in self.written.partitions.items() if self.written.name(key) == name)

    def describe(self, names: Iterable[str]) -> dict[str, TopicState]:
        keys = {self.written.name(key): key for key in self.written.partitions}
        return {
            name: TopicState(name, self.written.topic_ids[keys[name]], len(self._partitions(name)), 1, {}, "delete", 1)
            for name in names
        }

    def earliest(self, name: str, partitions: int) -> list[int]:
        return [partition.low for partition in self._partitions(name)[:partitions]]

    def last_stable(self, name: str, partitions: int) -> list[int]:
        return [partition.end for partition in self._partitions(name)[:partitions]]

    high_watermarks = last_stable


@dataclass
class _Slot:
    round: int
    rows: int = 0
    newest_event_ms: int = -1
    newest_timestamp_ms: int = -1
    ranges: list[Any] = field(default_factory=list)


def of_records(letters: list[DeadLetter]) -> list[DeadLetter]:
    records: dict[tuple[int, int], list[DeadLetter]] = {}
    for letter in letters:
        records.setdefault((letter.partition, letter.offset), []).append(letter)
    return [replace(each[0], rows=sum((part.rows for part in each), ())) for each in records.values()]


class Ingest:
    """One run's. `positions` are moved as it goes."""

    def __init__(
        self, job: Job, run: int, positions: list[Position], first_round: int, round_slots: int | None = None,
        workers: int | None = None,
    ) -> None:  # fmt: skip
        self._topic, self._run = str(job.topic("records").name), run
        self._batch_rows, self._round_slots = job.train.batch_rows, round_slots or job.rounds.slots
        self._workers = workers or job.train.workers
        layout = _native.SlotLayout.make(self._batch_rows, 64, job.schema.block_specs())
        self._buffer = np.zeros(layout.slot_bytes, np.uint8)
        self._filler = _native.BatchFiller(job.records.format, job.schema.native_plan(layout))
        self._positions = positions
        self._round, self._next_slot = first_round, 0
        self._slot: _Slot | None = None
        self._closed: list[_Slot] = []
        self._letters: list[DeadLetter] = []

    def read(self, partitions: list[Partition], turn: int = 5) -> None:
        """Reads `turn` records of a partition at a time, up to the partitions' ends."""
        while len(self._positions) < len(partitions):
            self._positions.append(Position(0))
        waiting = [
            [message for message in partition.messages if message.offset >= position.offset]
            for partition, position in zip(partitions, self._positions, strict=False)
        ]
        while any(waiting):
            for number, messages in enumerate(waiting):
                for message in messages[:turn]:
                    self._take(message)
                waiting[number] = messages[turn:]
        for number, partition in enumerate(partitions):
            if partition.end > self._positions[number].offset:
                part = self._range(number)
                part["to_offset"], part["to_row"] = partition.end, 0
                self._positions[number] = Position(partition.end)

    def _range(self, number: int) -> Any:
        if self._slot is None:
            self._slot = _Slot(self._round)
            self._filler.open(self._buffer)
        ranges = self._slot.ranges
        if not ranges or ranges[-1]["partition"] != number:
            part = np.zeros(1, RANGE_DTYPE)[0]
            part["partition"], part["record_rows"] = number, -1
            for end in ("from", "to"):
                part[f"{end}_offset"], part[f"{end}_row"] = self._positions[number]
            ranges.append(part)
        return ranges[-1]

    def _take(self, message: Message) -> None:
        number, position = message.partition, self._positions[message.partition]
        if message.value is None:
            part = self._range(number)
            part["tombstones"] += 1
            self._end_record(part, message)
            return
        from_row = position.row if position.offset == message.offset else 0
        begun, done = False, False
        while not done:
            part = self._range(number)
            assert self._slot is not None
            done = self._filler.more() if begun else self._filler.fill(message.value, from_row)
            begun, tally = True, self._filler.take_tally()
            self._slot.rows = self._filler.rows
            self._slot.newest_event_ms = max(self._slot.newest_event_ms, tally.newest_event_time_ms)
            self._slot.newest_timestamp_ms = max(self._slot.newest_timestamp_ms, message.timestamp_ms)
            for name in ("trained", "dead", "filtered"):
                part[name] += getattr(tally, name)
            if tally.dead_rows:
                self._report(message, tally.dead_rows)
            if done:
                part["record_rows"] = self._filler.record_rows if from_row else part["record_rows"]
                self._end_record(part, message)
            else:
                from_row = self._filler.record_rows
                part["to_offset"], part["to_row"] = message.offset, from_row
                self._positions[number] = Position(message.offset, from_row)
            if self._slot.rows == self._batch_rows:
                self._publish_slot()

    def _end_record(self, part: Any, message: Message) -> None:
        part["to_offset"], part["to_row"] = message.offset + 1, 0
        part["records"] += 1
        self._positions[message.partition] = Position(message.offset + 1)

    def _report(self, message: Message, dead_rows: Any) -> None:
        assert self._slot is not None and message.value is not None
        rows, run = tuple(DeadRange(*dead[:4]) for dead in dead_rows), (self._run, self._slot.round)
        record = message.key, message.value, len(message.value)
        self._letters.append(DeadLetter(self._topic, message.partition, message.offset, rows, *run, *record))

    def _open(self) -> list[_Slot]:
        return [slot for slot in self._closed if slot.round == self._round]

    def _publish_slot(self) -> None:
        assert self._slot is not None
        self._closed.append(self._slot)
        self._slot = None
        if len(self._open()) == self._round_slots:
            self._round += 1

    def publish(
        self, closed_by: CloseReason = CloseReason.INTERVAL, rejected: int | None = None
    ) -> tuple[Columns, list[DeadLetter]]:
        """Ends the open round and gives what has gathered since the last call; batch `rejected` of it was left out."""
        if self._slot is not None:
            self._publish_slot()
        if self._open():
            self._round += 1
        closed, self._closed = self._closed, []
        letters, self._letters = of_records(self._letters), []
        columns = Columns(*self._columns(closed, closed_by, rejected))
        self._next_slot += len(closed)
        return columns, letters

    def _columns(self, closed: list[_Slot], closed_by: CloseReason, rejected: int | None) -> Iterator[Any]:
        numbers = sorted({slot.round for slot in closed})
        rounds, slots = np.zeros(len(numbers), ROUND_DTYPE), np.zeros(len(closed), SLOT_DTYPE)
        for index, slot in enumerate(closed):
            ranges, out = slot.ranges, index == rejected
            slots[index]["slot"], slots[index]["rows"] = self._next_slot + index, slot.rows
            slots[index]["range_count"], slots[index]["rejected"] = len(ranges), int(out)
            slots[index]["trained"] = 0 if out else slot.rows
            slots[index]["loss_sum"], slots[index]["weight_sum"] = 0.5 * slot.rows, slot.rows
            for name in ("dead", "filtered", "tombstones"):
                slots[index][name] = sum(int(part[name]) for part in ranges)
            slots[index]["dead"] += slot.rows if out else 0
        for index, number in enumerate(numbers):
            mine = [at for at, slot in enumerate(closed) if slot.round == number]
            full = len(mine) == self._round_slots
            events = max(closed[at].newest_event_ms for at in mine)
            rounds[index]["round"], rounds[index]["first_slot"] = number, self._next_slot + mine[0]
            rounds[index]["slots"], rounds[index]["workers"] = len(mine), self._workers
            rounds[index]["closed_by"] = CloseReason.FULL if full else closed_by
            rounds[index]["statistics_pass"] = number == 0
            timestamps = [closed[at].newest_timestamp_ms for at in mine]
            rounds[index]["newest_event_ms"] = events if events >= 0 else max(timestamps)
        yield rounds
        yield slots
        yield np.array([part for slot in closed for part in slot.ranges], RANGE_DTYPE)


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
WINDOW = 10   # rows from which on one closes
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
        self._window = 0   # rows of the open one
        self._rows = 0
        self.use()
        self.record_source = TopicRecordSource(self.job, {}, Admin(self.written))

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
        imports: GoodJob | None = None, positions: str = "beginning", mode: str = "one",
    ) -> None:  # fmt: skip
        """A run that goes on, or begins a lineage; a fresh one passes over a `damaged` shelf. It may be an import of
        another job's newest snapshot."""
        self._runs += 1
        self.mode = mode
        self.run = Run(self._runs, uuid.uuid4().hex)
        at = self.written.clock_ms
        entry = RunEntry(self.run, self.job.name, "host", 100 + self._runs, at, build_digest(), mode)
        self.written.transaction([("control", control.run_message(entry))])
        slot = Slot(self.job.train.batch_rows, 64)
        self.publisher = Assembler(self.job, self.run, self._layout, slot, build_digest())
        newest = self.located[max(self.located)] if self.located else None
        if imports is not None:
            found = imports.located[max(imports.located)]
            manifest = found.manifest
            of = Imported(imports.job.name, manifest.version, found.digest, manifest.lineage, "far", positions)
            kept = (manifest.positions, manifest.gaps) if positions == "keep" else self.record_source.begin()
            self.lineage, self._state = imported_lineage(manifest, of, *kept), imports._state.copy()
        elif newest is None or fresh:
            chunks = TopicContents() if newest is None else TopicContents.of(newest)
            if damaged is not None:
                chunks = chunks.above(chunks.version + 5)._replace(
                    kept=tuple(k for k in chunks.kept if k.shelf != damaged)
                )
            self.lineage = fresh_lineage(self.job, self.record_source, chunks)
        elif restore is not None:
            self.lineage = restored_lineage(self.record_source, newest, self.located[restore], accept_gap)
            self._state = self._states[restore].copy()
        else:
            self.lineage = resumed_lineage(self.record_source, newest, accept_gap)
        if newest is None or fresh or restore is not None:
            self._publish(Columns.empty(), [], self.lineage.round, self.lineage.metrics)
            self._window = 0
        self._ingest = Ingest(self.job, self.run.number, list(self.lineage.positions), self.lineage.round + 1)

    def train(
        self, closed_by: CloseReason = CloseReason.INTERVAL, rejected: int | None = None, deaths: int = 0,
        score: float = 0.5, scores: Mapping[str, Any] | None = None, held_out: Mapping[str, Any] | None = None,
        passes: int = 0,
    ) -> None:  # fmt: skip
        """Trains on all records so far, in one publication. `score` of its windows and `scores`: metrics by which the
        job may end early."""
        self._ingest.read(self.written.partitions["records"])
        columns, letters = self._ingest.publish(closed_by, rejected)
        letters += rejected_letters(columns, lambda _: self.written.name("records"), self.run.number)
        self._state.view(np.float32)[0] += 0.25
        windows = [{"log_loss": score, "rows": rows} for rows in self._close_windows(columns)]
        rows = self.lineage.rows_seen + int(columns.slots["trained"].sum())
        metrics = {"total": {"log_loss": 0.5, "rows": rows}, "window": {"log_loss": 0.5}, "windows": windows}
        if self.job.train.early_stopping is not None:
            stop = EarlyStop(self.job.train.early_stopping, FIGURES, held_out)
            metrics |= scores or {}
            at = self.lineage.metrics, metrics, self.lineage.version + 1, rows, self.written.clock_ms + 600, passes
            metrics["early_stopping"] = stop.after(*at)
        self._publish(columns, letters, int(columns.rounds["round"][-1]), metrics, deaths)

    def _close_windows(self, columns: Columns) -> Iterator[int]:
        """Yields the rows of each that closes."""
        slots = iter(columns.slots)
        for round_ in columns.rounds:
            self._window += sum(int(slot["trained"]) for slot in islice(slots, int(round_["slots"])))
            if self._window >= WINDOW:
                yield self._window
                self._window, round_["closed_window"] = 0, 1

    def _publish(self, columns: Columns, letters: list[DeadLetter], last: int, metrics: Any, deaths: int = 0) -> None:
        self.written.clock_ms += 600
        with patch.object(publication, "time", SimpleNamespace(time_ns=lambda: self.written.clock_ms * 1_000_000)):
            assembly = self._assemble(columns, last, metrics, deaths)
        self._write(assembly, letters)

    def _assemble(self, columns: Columns, last: int, metrics: Any, deaths: int) -> Assembled:
        return self.publisher.assemble(self.lineage, self._state, last, columns, metrics, deaths)

    def _write(self, assembly: Assembled, letters: list[DeadLetter]) -> None:
        self.assembled = assembly
        dead = [("dead_letters", dead_letters.message(letter)) for letter in letters]
        messages = messages_of(assembly, {key: key for key in self.written.partitions})
        offset = self.written.transaction([*dead, *messages])["snapshots"]
        self.lineage: Lineage = adopt(self.lineage, assembly, offset)
        manifest = assembly.snapshot.manifest
        self.located[manifest.version] = Located(manifest, assembly.snapshot.digest, offset)
        self._states[manifest.version] = self._state.copy()

    def end(self, exit_code: int = 0) -> None:
        end = RunEnd(self.run, exit_code, "done", self.written.clock_ms)
        self.written.transaction([("control", control.end_message(end))])

    def predict(self, count: int = 6) -> None:
        """Requests and their answers, one of them an error."""
        located = self.located[max(self.located)]
        for index in range(count):
            partition = index % 2
            request_headers = (("trace", b"%d" % index),)
            offset = self.written.append("requests", b"[1]", b"r%d" % index, request_headers, partition)
            body: Any = {"prediction": 0.25}
            headers = [
                *request_headers,
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


@pytest.fixture(scope="module", autouse=True)
def small_windows() -> Iterator[None]:
    """For modules that import it."""
    with patch.object(checked_windows, "window_rows", lambda *_: WINDOW):
        yield


def imported_job(positions: str = "beginning") -> GoodJob:
    """A history that begins with an import of another's, is trained on, restored and begun anew."""
    other = GoodJob(clean=True)
    other.begin()
    for _ in range(3):
        other.more()
    job = GoodJob(clean=True)
    if positions == "keep":
        job.written.partitions["records"] = deepcopy(other.written.partitions["records"])
    job.begin(imports=other, positions=positions)
    job.end()
    first = max(job.located)
    for start in ({}, {}, {"restore": first + 1}, {"fresh": True}):
        job.begin(**start)
        job.more()
    return job


def good_job() -> GoodJob:
    """Two lineages, five runs, a partition added, a gap accepted, batches left out, every kind of row, predictions."""
    job = GoodJob()
    job.produce()
    job.begin()
    job.train()
    job.more(rejected=1)
    job.more(20, bad=False)
    job.predict()
    job.more(3, closed_by=CloseReason.END, deaths=1)
    job.end()
    job.add_partition()
    job.produce(5)
    job.begin()
    job.train()
    job.predict()
    job.more(4, deaths=2)
    job.produce(4, bad=False)
    job.begin()
    job.train()
    job.end(130)
    job.begin(restore=7)
    for _ in range(3):
        job.more(6, bad=False)
        job.predict()
    job.end()
    job.produce(9, bad=False)
    records = job.written.partitions["records"][2]
    records.remove(records.end - 8)
    job.begin(accept_gap=True)
    for _ in range(2):
        job.train()
        job.predict(2)
        job.produce(4)
    with patch.object(rounds, "MESSAGE_BYTES", 1_700):  # a log in parts
        job.train()
    job.more(4, partitions=[0, 2])
    job.end()
    return job


def clean_job() -> GoodJob:
    """A short history without dead letters and predictions, in which only the fold can find a forgery."""
    job = GoodJob(clean=True)
    for start in ({}, {}, {"restore": 4}):
        job.begin(**start)
        for _ in range(3):
            job.more()
    return job


def compacted(job: GoodJob) -> GoodJob:
    """The same job after compaction."""
    job.written.compact("snapshots")
    job.written.compact("control")
    return job
