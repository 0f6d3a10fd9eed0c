"""Snapshots that many hosts contributed to, trained by means that replay does not have, and computed again by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.checks.replay.engine import rounds_of
from streamtrain.checks.replay.replayed_state import LineageState
from streamtrain.checks.replay.reread_records import Readers
from streamtrain.checks.verify.verify import check_topics
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.quality import Quality
from streamtrain.compute.snapshot import model_payload, trainer_payload
from streamtrain.compute.state import view, views
from streamtrain.errors import CheckFailed, StreamtrainError
from streamtrain.kafka import round_logs
from streamtrain.record_sources.source_kind import Given, RecordReader, Topic
from streamtrain.run.publication import Assembled
from streamtrain.schemas import decoded_by, lookup_in
from streamtrain.topics.chunks import Stored
from streamtrain.topics.dead_letters import DeadLetter
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms
from tests.checks.verify import topics_in_memory
from tests.checks.verify.folded_in_memory import SYNC_SLOTS, FoldedJob, Host
from tests.checks.verify.topics_in_memory import Partition

DROPOUT = "layers = [ {{ dropout = 0.3 }},"   # so that a host's seed matters
Array = np.ndarray[Any, Any]


class MemoryReader(RecordReader):
    """A reader of partitions that are all at hand."""

    def open(self, partition: int, offset: int) -> _native.Source:
        found: Any = self._topic.partitions[partition]
        return _native.IteratorSource((each.offset, each.value) for each in found.read(offset, found.end))

    def close(self) -> None: ...

    def explained(self, failure: _native.KafkaFailure) -> StreamtrainError:
        raise AssertionError(failure)


class MemoryReaders(Readers):
    def __init__(self, partitions: list[Partition]) -> None:
        topic = Topic("records", "records-topic-id", partitions)
        super().__init__(Given(topic))
        self.reader = MemoryReader(topic)

    def of(self, terms: Terms, schema: Schema) -> RecordReader:
        return self.reader


class TrainedJob(FoldedJob):
    """A job whose hosts have arenas of their own; what they make is joined and folded by the rules alone."""

    def use(self, **changes: str) -> None:
        with patch.object(topics_in_memory, "JOB", topics_in_memory.JOB.replace("layers = [", DROPOUT)):
            super().use(**changes)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stored: dict[int, Stored] = {}
        self.published: list[RoundLogs] = []
        self.model = Model(self.job.model_spec())
        self._state = self.model.initial_state(7).copy()

    def row(self, **changes: Any) -> dict[str, Any]:
        """Numbers whose sums depend on their order."""
        return super().row(**{"x": 1e3 * math.sin(self._rows), "z": 1.1**self._rows, **changes})

    def produce(self, *_: Any, **__: Any) -> None:
        super().produce(20, bad=False)
        for partition in range(len(self.written.partitions["records"])):
            self.record([self.row(x=at) for at in range(13)], partition)
            self.record(self.row(z=None), partition)   # filtered

    def learn(self, logs: list[RoundLog]) -> tuple[list[RoundLog], Mapping[str, Any]]:
        start, mean = aligned(self._state.nbytes), aligned(self._state.nbytes)
        start[:] = self._state
        contributions = [self._contribution_of(log, start) for log in logs]
        given = [(state.ctypes.data, weight) for state, weight in contributions]
        _native.average(self.model.layout, start.ctypes.data, given, mean.ctypes.data)
        quality = Quality(self.job.schema.numbers)
        quality.begin(views(self._layout, start), self.lineage.metrics)
        self._state = mean
        return logs, quality.look(views(self._layout, mean))

    def _contribution_of(self, log: RoundLog, start: Array) -> tuple[Array, float]:
        terms, (round_,) = log.terms[0], rounds_of(log)
        slots = _native.SlotLayout.make(*vars(terms.slot).values(), self.job.schema.block_specs())
        arena = _native.Arena.create(
            workers=terms.workers, averaging_frequency=SYNC_SLOTS, slot_count=2 * SYNC_SLOTS * terms.workers,
            slot_layout=slots, state_layout=self.model.layout,
        )  # fmt: skip
        view(arena.mean_address(0), start.nbytes)[:] = start
        ring, ingest = _native.CoordinatorEnd(arena), _native.IngestEnd(arena)
        ring.begin(round=round_.number - 1, learning_rate=terms.learning_rate["rate"], seed=terms.seed)
        source = _native.LogSource(MemoryReaders(self.written.partitions["records"]).reader.open)
        format = decoded_by(self.job.records.named, lookup_in({}))
        filler = _native.LogFiller(arena, source, 1.0, format, self.job.schema.native_plan(slots))
        ends = np.cumsum([0, *round_.slots["range_count"]])
        for at in range(len(round_.slots)):
            filler.fill(at, round_.ranges[ends[at] : ends[at + 1]].tobytes())
        ingest.fill_round(round=round_.number, first_slot=0, rows=round_.slots["rows"].tolist())
        crew = [_native.Worker(arena, index) for index in range(terms.workers)]
        for each in crew:
            memory = each.state_address, each.base_address, each.share_address
            each.run_closed_round(self.model.compile("cpu", slots, *memory))
        results = np.array([arena.slot_result(at) for at in range(len(round_.slots))])
        log.slots["loss_sum"], log.slots["weight_sum"], log.slots["rejected"] = results.T
        joined = aligned(start.nbytes)
        vectors = [(each.state_address, float(sum(log.slots["weight_sum"][at :: len(crew)].tolist())))
                   for at, each in enumerate(crew)]  # fmt: skip
        moments = crew[-1].base_address if round_.number == 0 else 0
        return joined, _native.join(self.model.layout, start.ctypes.data, vectors, joined.ctypes.data, moments)

    def _write(self, assembly: Assembled, letters: list[DeadLetter]) -> None:
        super()._write(assembly, letters)
        payloads = model_payload(self._layout, self._state), trainer_payload(self._layout, self._state)
        snapshot, version = assembly.snapshot, assembly.logs.version
        self.stored[version] = Stored(snapshot.manifest, snapshot.digest, 0, *map(bytes, payloads))
        self.published.append(assembly.logs)


@pytest.fixture(scope="module")
def trained() -> TrainedJob:
    """Hosts of one and of more workers, with rates of their own; one joins with a partition, one leaves."""
    job = TrainedJob()
    job.begin(mode="many")
    a, b = Host("a", [0], rate=1e-2), Host("b", [1], workers=2)
    job.contribute(a, b)
    job.contribute(a, b)
    job.add_partition()
    job.contribute(a, b, Host("c", [2], workers=2, rate=1e-2))
    job.contribute(Host("a", [0, 1, 2], workers=3))
    return job


def replayed(job: TrainedJob, *changes: Callable[[RoundLogs], RoundLogs], begin: int = 1) -> list[str]:
    """Returns what differs from `begin` on; `changes` are those of the logs after it."""
    with MemoryReaders(job.written.partitions["records"]) as readers:
        state = LineageState(job.stored[begin], readers)
        logs = [each for each in job.published if each.version > begin]
        for at, change in enumerate(changes):
            logs[at] = change(logs[at])
        return [text for each in logs for text in state.follow(each, job.stored[each.version]).differences]


def test_verify_finds_nothing_and_replay_gives_the_same_bits(trained: TrainedJob) -> None:
    report = check_topics(trained.written.topics())
    assert report.ok and report.rows_trained == 330, "\n".join(report.lines())
    assert {len(each.each) for each in trained.published[1:]} == {1, 2, 3}
    for begin in (1, 2, 3, 4):
        assert replayed(trained, begin=begin) == []


def test_the_logs_in_the_topic_are_those_of_publications(trained: TrainedJob) -> None:
    """With parts of a log missing at the beginning, and each log in parts, which are left out of what is drawn."""
    messages = trained.written.partitions["rounds"][0].messages
    for found in (round_logs._joined, lambda _, those: round_logs._whole(those)):
        assert [[log.host for log in each] for each in found("rounds", messages)] == [
            ["a", "b"], ["a", "b"], ["a", "b", "c"], ["a"],
        ]  # fmt: skip
        assert [each.version for each in found("rounds", messages[1:])] == [3, 4, 5]
    with pytest.raises(CheckFailed, match="belongs to another snapshot"):
        list(round_logs._joined("rounds", [messages[0], messages[3]]))


def test_a_job_may_go_from_many_hosts_to_one_and_back() -> None:
    job = TrainedJob()
    job.begin()
    many = Host("a", [0]), Host("b", [1], workers=2)
    for mode, hosts in (("one", [Host("", [0, 1], 2)]), ("many", many), ("one", [Host("", [0, 1], 3)]), ("many", many)):
        job.begin(mode=mode)
        for _ in range(2):
            job.contribute(*hosts)
    assert [each.is_folded for each in job.published[1:]] == [False] * 2 + [True] * 2 + [False] * 2 + [True] * 2
    assert replayed(job) == []


def of_second(**changes: Any) -> Callable[[RoundLogs], RoundLogs]:
    def change(logs: RoundLogs) -> RoundLogs:
        return RoundLogs(tuple(replace(log, **changes) if log.contribution == 1 else log for log in logs))

    return change


def test_what_differs_is_named(trained: TrainedJob) -> None:
    logs = trained.published[2]
    terms = logs.each[1].terms[0]
    faster = replace(terms, learning_rate={**terms.learning_rate, "rate": 0.5})
    slots = logs.each[1].slots.copy()
    slots["weight_sum"][0] += 1
    for changes, words in (
        ({"terms": (faster,)}, ["host b: round 1 slot", "parameters:", "trainer state:", "chain of round logs"]),
        ({"slots": slots}, ["host b: round 1 slot 0: loss, weight", "parameters:", "chain of round logs"]),
        ({"worker_deaths": 1}, ["chain of round logs"]),
    ):
        found = replayed(trained, of_second(**changes), begin=2)
        assert all(any(word in text for text in found) for word in words), found
        assert len(words) > 1 or len({text.partition(":")[0] for text in found}) == 1
    closing = [replace(log, rounds=log.rounds.copy()) for log in logs]
    for log in closing:
        log.rounds["closed_window"] = 1
    found = replayed(trained, lambda _: RoundLogs(tuple(closing)), begin=2)
    assert any("closes a window that has not enough rows" in text for text in found)
