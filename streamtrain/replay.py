"""Replay: from a snapshot, train the round log's ranges again and compare with the snapshots that were published.

Reads topics only, writes nothing. On the same build the parameters come out bit for bit (guarantee 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.compute.memory.arena import published_layout, view
from streamtrain.compute.model import Model
from streamtrain.compute.snapshot import load, model_payload, trainer_payload
from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.chunks import Stored
from streamtrain.kafka.consumer import KafkaConsumer, ingest_config
from streamtrain.kafka.reading import read_round_logs
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.rounds import RoundLog
from streamtrain.vectorize.plan import native_plan
from streamtrain.vectorize.schema import Schema

_READ_TIMEOUT_S = 20.0
Settings = Mapping[str, str]


@dataclass
class Replayed:
    """One snapshot recomputed; `difference` is empty when every byte is the same."""

    version: int
    rounds: int
    rows: int
    difference: str = ""


@dataclass
class Report:
    """What was recomputed: from the snapshot `start` on."""

    job: str
    start: int
    snapshots: list[Replayed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return bool(self.snapshots) and all(not found.difference for found in self.snapshots)

    def as_dict(self) -> dict[str, Any]:
        rows = [
            {"version": s.version, "rounds": s.rounds, "rows": s.rows, "difference": s.difference}
            for s in self.snapshots
        ]
        return {"job": self.job, "from": self.start, "ok": self.ok, "snapshots": rows, "notes": self.notes}

    def lines(self) -> list[str]:
        """For people."""
        lines = [
            f"{'same  ' if not s.difference else 'DIFFERS'} snapshot {s.version}: {s.rows} rows in {s.rounds} rounds"
            + (f": {s.difference}" if s.difference else "")
            for s in self.snapshots
        ]
        result = "every snapshot came out bit for bit" if self.ok else "A SNAPSHOT DIFFERS"
        return [*lines, *self.notes, f"{self.job} from snapshot {self.start}: {result}"]


def replay(
    job: Job, from_version: int, to_version: int | None = None, on_snapshot: Callable[[Replayed], None] | None = None
) -> Report:
    """Recomputes every snapshot after `from_version` up to `to_version` that topics still let one recompute.

    Raises UserMistake where `from_version` or its round log is gone.
    """
    kafka = job.kafka_consumer()
    topic = SnapshotTopic(job.name, kafka["bootstrap.servers"], kafka)
    start = topic.version(from_version)
    report = Report(job.name, from_version)
    if start.manifest.build != build_digest():
        report.notes.append(
            f"snapshot {from_version} was trained by build {start.manifest.build}, this is {build_digest()}"
        )
    rounds_topic, records_topic = job.topic("rounds").name, job.topic("records").name
    assert rounds_topic is not None and records_topic is not None
    logs = [log for log in read_round_logs(kafka, rounds_topic) if log.lineage == start.manifest.lineage]
    by_version = {log.version: log for log in logs}
    held = {located.manifest.version for located in topic.list()}
    last = to_version if to_version is not None else max(by_version, default=from_version)
    state: np.ndarray[Any, np.dtype[np.uint8]] | None = None
    for version in range(from_version + 1, last + 1):
        log = by_version.get(version)
        if log is None:
            if version == from_version + 1:
                raise UserMistake(
                    f"{rounds_topic}: no round log leads from snapshot {from_version} to {version}; try a newer --from"
                )
            report.notes.append(f"stopped before {version}: no round log in this lineage")
            break
        stored = topic.version(version) if version in held else None
        replayed, state = _Replay(stored or start, records_topic, kafka, log).run(start, state, stored)
        if stored is None:
            report.notes.append(f"snapshot {version} is compacted away: recomputed, not compared")
        else:
            report.snapshots.append(replayed)
            if on_snapshot is not None:
                on_snapshot(replayed)
    if not report.snapshots:
        raise CheckFailed(
            f"{job.name}: nothing to compare after snapshot {from_version}: {'; '.join(report.notes) or 'no newer one'}"
        )
    return report


class _Replay:
    """One publication's rounds, trained again in this process, worker after worker."""

    def __init__(self, like: Stored, records_topic: str, kafka: Settings, log: RoundLog) -> None:
        manifest = like.manifest
        self._log = log
        self._manifest = manifest
        self._model = Model(dict(manifest.model_spec))
        self._schema = Schema.from_dict(dict(manifest.schema))
        self._format = manifest.job_settings["records"]["format"]
        self._workers = manifest.workers
        settings = manifest.job_settings
        frequency = int(settings["train"]["averaging_frequency"])
        self._slot_layout = _native.SlotLayout.make(
            manifest.slot.row_capacity, manifest.slot.range_capacity, self._schema.block_specs()
        )
        self._arena = _native.Arena.create(
            workers=self._workers,
            averaging_frequency=frequency,
            slot_count=2 * self._workers * frequency,
            slot_layout=self._slot_layout,
            state_layout=self._model.layout,
            dead_letter_bytes=4096,
        )
        self._layout = published_layout(self._model.blocks, self._model.layout.state_bytes, self._workers)
        self._learning_rate = float(settings["optimizer"]["learning_rate"])
        self._reader = _PartitionReader(records_topic, kafka)
        self._plan = native_plan(self._schema, self._slot_layout)
        self._decoder = _native.Decoder(self._format, self._plan)

    def run(
        self, start: Stored, state: np.ndarray[Any, np.dtype[np.uint8]] | None, expected: Stored | None
    ) -> tuple[Replayed, np.ndarray[Any, np.dtype[np.uint8]]]:
        mean = view(self._arena.mean_address(0), self._layout.state_bytes)
        if state is None:
            load(self._layout, mean, start.model, start.trainer)
        else:
            mean[:] = state
        self._arena.set_start(
            round=int(self._log.rounds["round"][0]) - 1, seed=self._manifest.seed, learning_rate=self._learning_rate
        )
        workers = [self._worker(index) for index in range(self._workers)]
        first_slot = 0
        with self._reader:
            for round_, slots, ranges in _rounds(self._log):
                self._fill(int(round_["round"]), first_slot, slots, ranges)
                for rounds, plan in workers:
                    rounds.run_closed_round(plan)
                first_slot += len(slots)
        buffer, _ = self._arena.pin_newest()
        result = view(self._arena.mean_address(buffer), self._layout.state_bytes).copy()
        replayed = Replayed(self._log.version, len(self._log.rounds), self._log.rows_trained)
        if expected is not None:
            replayed.difference = self._difference(result, expected)
        return replayed, result

    def _worker(self, index: int) -> tuple[_native.WorkerRounds, Any]:
        rounds = _native.WorkerRounds(self._arena, index, *self._model.betas)
        plan = self._model.compile(
            backend="cpu",
            slot_layout=self._slot_layout,
            state=rounds.state_address,
            base=rounds.base_address,
            share=rounds.share_address,
        )
        return rounds, plan

    def _fill(self, round_: int, first_slot: int, slots: Any, ranges: Any) -> None:
        rows = []
        at = 0
        for index, slot in enumerate(slots):
            number = first_slot + index
            buffer = view(self._arena.slot_address(number), self._slot_layout.slot_bytes)
            filled = 0
            for part in ranges[at : at + int(slot["range_count"])]:
                filled = self._fill_range(buffer, filled, part)
            at += int(slot["range_count"])
            if filled != int(slot["rows"]):
                raise CheckFailed(
                    f"round {round_} slot {int(slot['slot'])}: expected {int(slot['rows'])} rows, decoded {filled}"
                )
            self._plan.clear_behind(buffer, filled)
            rows.append(filled)
            if slot["rejected"]:
                self._arena.reject_slot(number, index % self._workers)
        self._arena.fill_round(round=round_, first_slot=first_slot, rows=rows)

    def _fill_range(self, buffer: np.ndarray[Any, np.dtype[np.uint8]], filled: int, part: Any) -> int:
        until = filled + int(part["trained"])
        from_row = int(part["from_row"])
        for offset, value in self._reader.records(part):
            if value is None or filled == until:
                continue
            self._decoder.begin(value, from_row if offset == int(part["from_offset"]) else 0)
            filled = self._decoder.next(buffer, filled, until)[1]
        return filled

    def _difference(self, state: np.ndarray[Any, np.dtype[np.uint8]], expected: Stored) -> str:
        found = []
        assert expected.trainer is not None  # version() fetches the whole snapshot
        for what, ours, theirs in (
            ("parameters", model_payload(self._layout, state), expected.model),
            ("trainer state", trainer_payload(self._layout, state), expected.trainer),
        ):
            if bytes(ours) != bytes(theirs):
                a, b = (np.frombuffer(payload, np.uint8) for payload in (ours, theirs))
                count = int((a != b).sum()) if len(a) == len(b) else abs(len(a) - len(b))
                found.append(f"{what}: {count} of {len(b)} bytes differ")
        return "; ".join(found)


def _rounds(log: RoundLog) -> Iterator[tuple[Any, Any, Any]]:
    """(round, its slots, their ranges) of a log."""
    slot = part = 0
    for round_ in log.rounds:
        slots = log.slots[slot : slot + int(round_["slots"])]
        count = int(slots["range_count"].sum(dtype=np.int64))
        yield round_, slots, log.ranges[part : part + count]
        slot += len(slots)
        part += count


class _PartitionReader:
    """Records of each partition in offset order; one consumer a partition, opened when first needed."""

    def __init__(self, topic: str, kafka: Settings) -> None:
        self._topic = topic
        self._settings = ingest_config({**kafka, "queued.max.messages.kbytes": "4096"})
        self._open: dict[int, tuple[KafkaConsumer, Iterator[tuple[int, bytes | None]]]] = {}
        self._last: dict[int, tuple[int, bytes | None]] = {}

    def __enter__(self) -> _PartitionReader:
        return self

    def __exit__(self, *_: object) -> None:
        for consumer, _messages in self._open.values():
            consumer.close()
        self._open.clear()

    def records(self, part: Any) -> Iterator[tuple[int, bytes | None]]:
        """The records that range `part` touches; the one at its end only if some of its rows are in the range."""
        partition, at, end = int(part["partition"]), int(part["from_offset"]), int(part["to_offset"])
        last = end if int(part["to_row"]) else end - 1
        if not int(part["records"]) and not int(part["to_row"]):
            return  # only control records, aborted or compacted ones
        held = self._last.get(partition)
        while at <= last:
            offset, value = held if held is not None and held[0] >= at else next(self._messages(partition, at))
            held = None
            self._last[partition] = (offset, value)
            if offset > last:
                return
            yield offset, value
            at = offset + 1

    def _messages(self, partition: int, offset: int) -> Iterator[tuple[int, bytes | None]]:
        if partition not in self._open:
            consumer = KafkaConsumer(self._settings)
            consumer.assign(self._topic, [(partition, offset)])
            self._open[partition] = (consumer, self._read(consumer, partition))
        return self._open[partition][1]

    def _read(self, consumer: KafkaConsumer, partition: int) -> Iterator[tuple[int, bytes | None]]:
        empty_s = 0.0
        while empty_s < _READ_TIMEOUT_S:
            messages = consumer.consume(4096, 0.5)
            empty_s = 0.0 if messages else empty_s + 0.5
            for message in messages:
                if not message.error:
                    yield message.offset, message.value
        raise CheckFailed(
            f"{self._topic}: partition {partition}: expected more records for the round log, "
            f"none came in {_READ_TIMEOUT_S:.0f} s"
        )
