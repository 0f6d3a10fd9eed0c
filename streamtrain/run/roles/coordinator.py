"""The coordinator: fences older runs, loads or creates the snapshot, then publishes what the workers average.

The one writer of snapshots, rounds, dead letters and control. Trains nothing and never waits for a transaction.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.compute.metrics import names
from streamtrain.compute.model import Model
from streamtrain.compute.state import attach, view
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import KafkaBroken, KafkaUnreachable, Replaced, StreamtrainError
from streamtrain.job import Job
from streamtrain.job.early_stop import EarlyStop
from streamtrain.job.registry_settings import RegistrySettings
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.transaction import Transactions
from streamtrain.record_sources.file_source import files_from
from streamtrain.record_sources.record_source import RecordSource
from streamtrain.record_sources.topic_source import record_source_of
from streamtrain.record_sources.validation_set import load_validation_set
from streamtrain.run.heap import share_one_heap
from streamtrain.run.judging import Judging
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.lease import Lease
from streamtrain.run.lineage import Lineage, StartFlags
from streamtrain.run.publication import Assembler
from streamtrain.run.publishing import Ended, Publishing
from streamtrain.run.round_log import UnpublishedRounds
from streamtrain.run.start import Start
from streamtrain.run.watch import Watch
from streamtrain.telemetry.tracing import Tracing, opened
from streamtrain.topics.manifest import Slot

HELP = "publishes snapshots, round log and dead letters in transactions"


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    job: dict[str, Any]
    kafka: dict[str, dict[str, str]]  # consumer, producer
    topics: dict[str, str]  # names by key
    registry: Mapping[str, Any] = field(default_factory=dict)  # properties of its client; may hold secrets
    files: Sequence[Mapping[str, Any]] = ()  # to be trained in the place of the topic
    held_out: Sequence[Mapping[str, Any]] = ()  # files that early stopping judges by
    has_end: bool = False  # what is to be trained, whatever comes to the topic meanwhile
    fresh: bool = False
    restore: int | None = None
    accept_gap: bool = False
    add_classes: Sequence[str] = ()
    max_rows: int | None = None  # to train in this run
    module: Mapping[str, Any] | None = None  # the network of a new lineage, where it is not of layers
    until_rows: int | None = None  # to train in the lineage, for a run that goes on with another's
    traces: str = ""  # the exporter of spans of publications: telemetry/tracing.py


def run(config: Config) -> int:
    share_one_heap()
    job = replace(Job.from_effective(config.job), registry=RegistrySettings(config.registry))
    consumer = config.kafka["consumer"]
    admin = Admin(consumer["bootstrap.servers"], consumer)
    record_source = record_source_of(job, consumer, admin, files_from(config.files))
    topics = Lease(job.name, consumer, config.topics, admin)
    transactions = Transactions(config.kafka["producer"], job.name, topics)
    publishing: Publishing | None = None
    tracing = opened(config.traces)
    try:
        publishing = _begin(config, job, record_source, topics, transactions, tracing, admin)
        ended = publishing.run()
    except StreamtrainError as error:
        if publishing is not None and isinstance(error, Replaced):
            tell("replaced")
        passing = isinstance(error, Replaced | KafkaBroken | KafkaUnreachable)
        if not passing and (publishing is None or not publishing.pending):
            _say_end(topics, transactions, error.exit_code, str(error))
        raise
    finally:
        if tracing is not None:
            tracing.close()
    code, reason = _supervisors_word() if ended is Ended.LEAVE else (0, ended.value)
    _say_end(topics, transactions, code, reason)
    return code


def _begin(
    config: Config,
    job: Job,
    record_source: RecordSource,
    topics: Lease,
    transactions: Transactions,
    tracing: Tracing | None,
    admin: Admin,
) -> Publishing:
    """Takes the job, decides where to start, puts parameters and positions in place and sets READY."""
    arena = attach(config.arena)
    ring = _native.CoordinatorEnd(arena)
    model = Model(job.model_spec(), TorchModule.from_dict(config.module) if config.module else None)
    layout = model.layout.published(job.train.workers)
    slot = Slot(arena.slot_layout.row_capacity, arena.slot_layout.range_capacity)
    taken = transactions.open()
    control = ControlTopic(config.kafka["consumer"], config.topics["control"])  # nobody else uses it
    publisher = KafkaPublisher(record_source, transactions, Watch(taken, control.look), config.topics, tracing)
    assembler = Assembler(job, taken, layout, slot, build_digest())
    flags = StartFlags(config.fresh, config.restore, config.accept_gap, config.add_classes)
    state = view(ring.mean_address(0), layout.state_bytes)
    start = Start(job, model, record_source, topics, publisher, assembler, tell)
    found = start.find(flags, state)
    judging = _judging(config, job, model, assembler, found.lineage.metrics, admin)  # a mistake is told before
    lineage = start.begin(found, state)
    ring.begin(
        round=lineage.round,
        learning_rate=job.optimizer.learning_rate,
        seed=lineage.seed,
        rows_seen=lineage.rows_seen,
        row_bound=_row_bound(config, lineage),
        positions=[(partition, at.offset, at.row) for partition, at in enumerate(lineage.positions)],
    )
    unpublished = UnpublishedRounds(ring)
    publishing = Publishing(job, lineage, ring, unpublished, assembler, publisher, tell, judging)
    ring.start()
    return publishing


def _judging(
    config: Config, job: Job, model: Model, assembler: Assembler, metrics: Mapping[str, Any], admin: Admin
) -> Judging | None:
    """Returns what decides that training ends by itself, with its validation set; None without early stopping.
    `metrics`: those of the lineage."""
    early, layout = job.train.early_stopping, assembler.layout
    if early is None:
        return None
    figures = names({each.name: each.shape for each in layout.blocks})
    validation = load_validation_set(job, files_from(config.held_out), config.kafka["consumer"], admin, metrics)
    if validation is None:
        return Judging(EarlyStop(early, figures), model, layout, config.has_end)
    return Judging(EarlyStop(early, figures, validation.description), model, layout, config.has_end, validation.rows)


def _say_end(topics: Lease, transactions: Transactions, exit_code: int, reason: str) -> None:
    """Writes to control how this run ends, if it had begun."""
    if transactions.run is not None:
        transactions.end(topics.end(transactions.run, exit_code, reason))


def _row_bound(config: Config, lineage: Lineage) -> int:
    if config.until_rows is not None:
        return max(0, config.until_rows - lineage.rows_seen)
    return -1 if config.max_rows is None else config.max_rows


def _supervisors_word() -> tuple[int, str]:
    """Reads why the supervisor ends the run: exit code and reason."""
    word = json.loads(sys.stdin.readline())
    return int(word["exit_code"]), word["reason"]


def tell(event: str, **fields: object) -> None:
    """One line for the supervisor, which shows it."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()
