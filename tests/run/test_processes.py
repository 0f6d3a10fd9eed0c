"""A run's processes: forks of a copy of the command and its own children; the pause between runs; and the coordinator's
loop over a real ring, with a publisher of the test's own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import psutil
import pytest
from typer.testing import CliRunner

from streamtrain import _native
from streamtrain.cli.commands import train
from streamtrain.cli.session import Session
from streamtrain.columns.rejected import Rejecting
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from streamtrain.errors import CheckFailed, KafkaBroken, Replaced, TooManyOpenFiles, UserMistake
from streamtrain.fitting.callbacks import Callbacks
from streamtrain.fitting.feed import Feed
from streamtrain.fitting.memory_publisher import MemoryPublisher
from streamtrain.fitting.watching import Watching
from streamtrain.job import Job
from streamtrain.kafka.transaction import Batch
from streamtrain.run import cores, fork_server
from streamtrain.run.arena import make_arena, worker_config
from streamtrain.run.back_off import BackOff
from streamtrain.run.fork_server import ForkServer
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.lineage import Lineage, imported_lineage
from streamtrain.run.publication import Assembled, Assembler, adopt
from streamtrain.run.publishing import Ended, Publishing
from streamtrain.run.round_log import Columns, UnpublishedRounds
from streamtrain.run.unpublished_dead_letters import Letters
from streamtrain.topics import control, rounds
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Imported, Position, Positions, Run, Slot, decode
from streamtrain.topics.topic import all_topics
from tests.checks.verify.topics_in_memory import GoodJob
from tests.e2e.harness import LiveJob, Running, processes_of

TABLES: dict[str, Any] = {
    "columns": {"x": {}, "y": {"role": "label"}},
    "records": {"format": "json"},
    "train": {"batch_rows": 4, "batch_growth": "off", "averaging_frequency": 2, "workers": 1, "round_interval": "off"},
    "publish": {"interval": "1h"},
}
GOOD, BAD = b"[1, 1]", b'["much", 1]'


class Rows(Feed):
    def where(self, record: int, row: int) -> str:
        return f"row {row}"

    def number(self, record: int, row: int) -> int:
        return row


class Kept(MemoryPublisher):
    """Remembers the rounds and the letters it was given."""

    def __init__(self) -> None:
        super().__init__(Rows(Job.from_tables(TABLES), Rejecting()), Watching(Callbacks(()), None, None, None))
        self.rounds: list[int] = []
        self.letters = 0

    def publish(self, assembled: Assembled, letters: Letters) -> int:
        self.rounds.append(assembled.snapshot.manifest.round)
        self.letters += letters.count
        return super().publish(assembled, letters)


class Bed:
    """A lineage at its start, with records; its rounds are trained when the test says so."""

    def __init__(self, records: Sequence[bytes] = (GOOD,) * 8, publisher: Any = None, **train: Any) -> None:
        self.publisher = publisher or Kept()
        self.job = Job.from_tables({**TABLES, "train": {**TABLES["train"], **train}})
        self.model = Model(self.job.model_spec())
        self.arena = make_arena(self.job, self.model)
        self.ring = _native.CoordinatorEnd(self.arena)
        self.supervisor = _native.SupervisorEnd(self.arena)
        layout = self.model.layout.published(1)
        state = view(self.ring.mean_address(0), layout.state_bytes)
        self.model.layout.begin_lineage(self.model.initial_state(1), 1, state)
        slot = Slot(self.arena.slot_layout.row_capacity, self.arena.slot_layout.range_capacity)
        self.assembler = Assembler(self.job, Run(1, "a" * 32), layout, slot, "build")
        lineage = Lineage("b" * 32, 1, -1, 0, [Position(0)], "topic")
        first = self.assembler.assemble(lineage, state, -1, Columns.empty(), {})
        self.lineage = adopt(lineage, first, self.publisher.publish(first, Letters.none()))
        self.ring.begin(round=-1, learning_rate=0.1, positions=[(0, 0, 0)])
        self.unpublished = UnpublishedRounds(self.ring)
        self.ring.start()
        self.worker = _native.Worker(self.arena, 0)
        addresses = (self.worker.state_address, self.worker.base_address, self.worker.share_address)
        self.plan = self.model.compile("cpu", self.arena.slot_layout, *addresses)
        self.events: list[str] = []
        source = _native.MemorySource()
        plan = self.job.schema.native_plan(self.arena.slot_layout)
        ingest = _native.Ingest(_native.RoundCutter(self.arena), source, "json", plan)
        ingest.start()
        for record in records:
            assert source.put(record, 10)
        source.end()
        assert ingest.run(10) == _native.IngestStatus.ENDED

    def train(self) -> None:
        """The next round, to the copying of its log."""
        before = self.arena.progress()["slots_released"]
        self.worker.run_closed_round(self.plan)
        while self.arena.progress()["slots_released"] == before:
            pass

    def publishing(self, ring: Any = None) -> Publishing:
        return Publishing(
            self.job, self.lineage, ring or self.ring, self.unpublished, self.assembler, self.publisher,
            lambda event, **fields: self.events.append(event),
        )  # fmt: skip


class Looked:
    """The ring; the last round is trained as the loop looks at its progress for the n-th time."""

    def __init__(self, bed: Bed, look: int) -> None:
        self._bed, self._left = bed, look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bed.ring, name)

    def progress(self) -> dict[str, int]:
        self._left -= 1
        if self._left == 0:
            self._bed.train()
        return self._bed.ring.progress()


@pytest.mark.parametrize("look", [2, 3, 4, 5])
def test_a_round_that_ends_while_the_loop_looks_is_published(look: int) -> None:
    bed = Bed()
    assert bed.publishing(Looked(bed, look)).run() is Ended.DONE
    assert bed.publisher.rounds == [-1, 0]
    manifest = bed.publisher.stored().manifest
    assert manifest.rows_seen == 8 and manifest.positions.partitions == (Position(8),)
    assert [event for event in bed.events if event != "progress"] == ["published", "ended"]


def test_an_order_to_drain_ends_stopped_and_an_order_to_leave_leaves() -> None:
    bed = Bed()
    bed.train()
    bed.supervisor.tell(_native.Stop.DRAIN)
    assert bed.publishing().run() is Ended.STOPPED
    bed.supervisor.tell(_native.Stop.LEAVE)
    assert bed.publishing().run() is Ended.LEAVE


def test_dead_letters_go_with_their_rounds_and_make_room() -> None:
    bed = Bed([GOOD, BAD] * 4 + [GOOD] * 4)
    bed.train()
    publishing = bed.publishing()
    assert publishing.run() is Ended.DONE
    assert bed.publisher.letters == 4 and bed.ring.dead_letter_bytes_waiting == 0
    assert publishing.lineage.counts.dead == 4 and publishing.lineage.rows_seen == 8


def test_too_many_dead_letters_end_the_run_once_they_are_published() -> None:
    bed = Bed([BAD, GOOD] * 1024, batch_rows=512)
    bed.train()
    with pytest.raises(CheckFailed, match=r'1024 of the last 2048 rows are dead letters.*"much"'):
        bed.publishing().run()
    assert bed.publisher.letters == 1024


class Refusing(Kept):
    def heed(self, pending: bool) -> None:
        raise KafkaBroken("away")


def test_what_the_publisher_raises_ends_the_loop() -> None:
    with pytest.raises(KafkaBroken, match="away"):
        Bed(publisher=Refusing()).publishing().run()


def test_the_state_published_is_the_mean() -> None:
    bed = Bed()
    bed.train()
    assert bed.publishing().run() is Ended.DONE
    buffer, _ = bed.ring.pin_newest()
    mean = view(bed.ring.mean_address(buffer), bed.model.layout.state_bytes)
    weight = next(block for block in bed.model.layout.blocks if block.name == "output.weight")
    raw = mean[weight.offset : weight.offset + 4].tobytes()
    assert raw in bed.publisher.stored().model and np.frombuffer(raw, np.float32)[0] != 0


GOLDEN = Path(__file__).parents[1] / "golden" / "manifest.v6.msgpack"


def test_an_import_counts_early_stopping_anew() -> None:
    """The best so far lies elsewhere."""
    found = replace(decode(GOLDEN.read_bytes()), metrics={"total": {"rows": 7}, "early_stopping": {"best_version": 3}})
    of = Imported("other", found.version, b"0" * 32, found.lineage, "far", "keep")
    lineage = imported_lineage(found, of, Positions("topic", ()), ())
    assert lineage.metrics == {"total": {"rows": 7}} and lineage.version == found.version


# -- the publisher on Kafka: what a publication is, and when a run ends -----------------------------------------------

NAMES = {key: f"the {key}" for key in all_topics()}


class Transactions:
    """Takes each batch once its check is through."""

    unreachable = False

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def answered(self, read: Any) -> Any:
        return read()

    def publish(self, batch: Batch) -> int:
        batch.check(10)
        self.batches.append(batch)
        return 7


class Origin:
    """A record source of one topic id."""

    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id
        self.seen: list[Any] = []

    def check(self, version: int, seen: Positions) -> None:
        if seen.topic_id != self._topic_id:
            raise UserMistake(f"another topic after {version}")

    def trained(self, positions: Any) -> None:
        self.seen += positions


def published(topic_id: str = "topic") -> Any:
    """A publisher, and what it was made of."""
    watch = SimpleNamespace(replaced_by=None, no_more_files=None, unreachable=False, answered_s=0.0)
    parts = SimpleNamespace(origin=Origin(topic_id), transactions=Transactions(), watch=watch)
    publisher_class: Any = KafkaPublisher
    return publisher_class(parts.origin, parts.transactions, watch, NAMES), parts


@pytest.fixture(scope="module")
def job() -> GoodJob:
    """Two publications: that which begins the lineage, and one of its first rounds."""
    job = GoodJob()
    job.begin()
    job.produce()
    job.train()
    return job


def test_a_publication_is_one_transaction_with_the_manifest_last(job: GoodJob) -> None:
    publisher, parts = published()
    assembly = job.assembled
    assert publisher.publish(assembly, Letters.none()) == 7
    (batch,) = parts.transactions.batches
    newest = control.Newest(2, assembly.snapshot.digest, job.lineage.id)
    assert len(batch.messages) == len(messages := list(batch.messages))
    assert messages == [
        *(("the rounds", message) for message in rounds.messages(assembly.logs.first)),
        ("the control", control.newest_message(newest)),
        *(("the snapshots", message) for message in assembly.snapshot.messages),
    ]
    assert messages[-1][1].key.endswith(b"/m") and len(rounds.messages(assembly.logs.first)) == 1
    assert (batch.digest, batch.name) == (assembly.snapshot.digest, "snapshot 2")
    publisher.published(assembly)
    assert parts.origin.seen == assembly.positions != []


def test_nothing_of_another_origin_is_committed(job: GoodJob) -> None:
    publisher, parts = published()
    publisher.prepare(Lineage("b" * 32, 1, -1, 0, [Position(0)], "topic"))
    publisher.publish(job.assembled, Letters.none())
    publisher.prepare(Lineage("b" * 32, 1, -1, 0, [Position(0)], "another"))
    with pytest.raises(UserMistake, match="another topic after"):
        publisher.publish(job.assembled, Letters.none())
    assert len(parts.transactions.batches) == 1


def test_a_publication_that_stays_pending_while_kafka_answers_ends_the_run() -> None:
    publisher, parts = published()
    parts.watch.answered_s = 100.0
    publisher.heed(pending=False)
    for answered_s in (100.0, 160.0):  # while Kafka is away it stands still
        parts.watch.answered_s = answered_s
        publisher.heed(pending=True)
    parts.watch.answered_s = 160.1
    with pytest.raises(KafkaBroken, match="pending for 60 s"):
        publisher.heed(pending=True)


def test_what_the_watch_has_seen_ends_the_run() -> None:
    another = RunEntry(Run(3, "b" * 32), "job", "host", 1, 1, "build")
    for name, seen, error in (
        ("replaced_by", another, Replaced), ("no_more_files", TooManyOpenFiles("none left"), TooManyOpenFiles)
    ):  # fmt: skip
        publisher, parts = published()
        setattr(parts.watch, name, seen)
        with pytest.raises(error, match="run 3" if seen is another else "none left"):
            publisher.heed(pending=False)


def test_kafka_is_away_where_either_of_its_clients_says_so() -> None:
    publisher, parts = published()
    assert not publisher.unreachable
    parts.watch.unreachable = True
    assert publisher.unreachable
    parts.watch.unreachable, parts.transactions.unreachable = False, True
    assert publisher.unreachable


def server_of(running: Running) -> psutil.Process:
    (found,) = [
        each for each in psutil.Process(running.process.pid).children() if each.name() == fork_server.NAME
    ]  # fmt: skip
    return found


def test_a_run_goes_on_without_the_copy_and_nothing_is_left_behind(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    running = job.start("train")
    running.wait_event("started")
    command, server = psutil.Process(running.process.pid), server_of(running)
    children = running.children()
    assert [each.name() for each in children] == ["coordinator", "ingest", "worker-0", "worker-1"]
    assert {(each.ppid(), tuple(each.cmdline())) for each in children} == {(command.pid, tuple(command.cmdline()))}
    server.kill()
    children[2].kill()
    running.wait_event("worker_died")
    job.produce(1_000)
    running.wait_rows(1_000)
    new = next(each for each in running.children() if each.name() == "worker-0")
    assert new.cmdline()[-2:] == ["-m", "streamtrain.run"]
    assert running.end(signal.SIGINT) == 130
    assert job.verified()["rows"]["trained"] == 1_000


def test_all_end_with_a_command_that_is_killed(kafka: Any, tmp_path: Path) -> None:
    running = LiveJob(kafka, tmp_path).start("train")
    running.wait_event("started")
    processes = [server_of(running), *processes_of(running.process.pid)]
    running.process.kill()
    assert running.finish() == -signal.SIGKILL
    assert psutil.wait_procs(processes, 240)[1] == []


def test_the_copy_is_made_before_a_job_may_bring_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of PyTorch that a job names may bring some; without one, the copy has the job's tables."""
    order: list[str] = []

    def loaded(*given: Any, imports: bool = True) -> NoReturn:
        order.append("job with its module" if imports else "job")
        raise UserMistake("no job")

    monkeypatch.setattr(train.ForkServer, "start", lambda without: order.append("copy"))
    monkeypatch.setattr(Session, "job", loaded)
    assert CliRunner().invoke(train.app, ["job.toml"]).exception is not None
    assert order == ["job", "copy", "job with its module"]


def test_a_process_with_more_threads_is_not_copied() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert ForkServer.start("") is None
    finally:
        done.set()
        thread.join()


# -- pauses ---------------------------------------------------------------------------------------------------------


def after(back_off: BackOff, published: bool = False, lasted_s: float = 1.0, is_error: bool = False) -> float | None:
    return back_off.pause_s(published, lasted_s, is_error)


def test_it_grows_only_from_one_run_that_published_nothing_to_the_next() -> None:
    back_off = BackOff()
    assert [after(back_off, published=True) for _ in range(20)] == [0.2] * 20
    assert [after(back_off) for _ in range(7)] == [0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert after(back_off, published=True) == 0.2
    assert [after(back_off), after(back_off, lasted_s=61)] == [0.4, 0.2]


def test_it_ends_after_five_runs_that_published_nothing_and_failed() -> None:
    back_off = BackOff()
    assert None not in [after(back_off, is_error=True) for _ in range(4)]
    assert None not in [after(back_off, published=True, is_error=True), *(after(back_off) for _ in range(9))]
    assert None not in [after(back_off, is_error=True) for _ in range(3)]
    assert after(back_off, is_error=True) is None and back_off.errors == 5


def test_runs_that_published_follow_each_other_at_once(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="20ms")
    running = job.start("train")
    for life in range(1, 5):
        running.wait_event("started")
        job.produce(50, seed=life)
        running.wait_event("published", rows=50 * life)
        running.children()[1].kill()
    running.wait_event("started")
    assert running.end() == 0
    pauses = [event["pause_s"] for event in running.events if event["event"] == "restarting"]
    assert pauses == [0.2] * 4, (pauses, running.errors())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_stop_between_two_runs_is_a_stop(kafka, tmp_path: Path, number: signal.Signals, code: int) -> None:
    job = LiveJob(kafka, tmp_path)
    running = job.start("train")
    running.wait_event("started")
    running.process.send_signal(signal.SIGSTOP)  # so that it meets both at once
    for child in running.children():
        child.kill()
    running.process.send_signal(number)
    running.process.send_signal(signal.SIGCONT)
    assert running.finish() == code
    assert "is trained by the next start" in running.errors(), running.errors()


# -- the cores that a run's workers get -------------------------------------------------------------------------------

OF_CORES = {"columns": {"x": {}, "y": {"role": "label"}}}


def job_with(**train: Any) -> Job:
    return Job.from_tables({**OF_CORES, "train": train})


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores 2 to 9, and no quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2, 10)))
    monkeypatch.setattr(cores, "usable_count", lambda: 8)


def test_auto_gives_each_worker_its_own_cores(eight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores.cores_of_workers(job_with(workers=2, threads_per_worker=3, affinity="auto")) == [[2, 3, 4], [5, 6, 7]]
    assert cores.cores_of_workers(job_with(workers=8, affinity="auto")) == [[core] for core in range(2, 10)]
    assert cores.cores_of_workers(job_with(workers=3, threads_per_worker=3, affinity="auto")) == []
    assert cores.cores_of_workers(job_with(workers=2, affinity="off")) == []
    monkeypatch.setattr(cores, "usable_count", lambda: 3)
    assert cores.cores_of_workers(job_with(workers=4, affinity="auto")) == [], "a quota leaves too few"


def test_cores_that_are_not_there_are_refused_before_anything_starts(eight: None) -> None:
    assert cores.cores_of_workers(job_with(workers=2, affinity="2-3;9")) == [[2, 3], [9]]
    problem = r"train.affinity: expected for worker 1 cores that this process may use \(2-9\), got 0,10-11; name others"
    with pytest.raises(UserMistake, match=problem):
        worker_config(job_with(workers=2, affinity="2;0,4,10-11"))


def test_more_threads_than_cores_are_reported(eight: None, caplog: pytest.LogCaptureFixture) -> None:
    worker_config(job_with(workers=2, threads_per_worker=4))
    assert caplog.records == []
    assert worker_config(job_with(workers=3, threads_per_worker=3))["threads"] == 3
    (warning,) = caplog.records
    assert "9 threads of 3 workers have 8 cores: expected a core for each" in warning.getMessage()


@pytest.mark.parametrize(
    ("quotas", "most"),
    [
        ({"": "max 100000"}, None), ({"": "150000 100000"}, 1), ({"a/b": "50000 100000"}, 1), ({}, None),
        ({"a": "200000 100000", "a/b": "max 100000"}, 2), ({"a/b": "no quota"}, None), ({"other": "1 100000"}, None),
    ],
)  # fmt: skip
def test_a_control_groups_quota_counts(quotas: dict[str, str], most: int | None, tmp_path: Path) -> None:
    for name, text in quotas.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cpu.max").write_text(text + "\n")
    group = tmp_path / "cgroup"
    group.write_text("1:name=systemd:/x\n0::/a/b\n")
    usable = len(os.sched_getaffinity(0))
    assert cores.usable_count(tmp_path, group) == (usable if most is None else min(most, usable))
    assert cores.usable_count(tmp_path, tmp_path / "none") == usable


def test_cores_are_shown_as_taskset_writes_them() -> None:
    assert [cores.format_cores(each) for each in ([], [3], [0, 1, 2], [0, 2, 3, 7])] == ["", "3", "0-2", "0,2-3,7"]
