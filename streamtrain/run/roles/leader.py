"""The leader: on each of many hosts, waits for its turn; then fences the one before it, and publishes what all hosts
send.

Kafka's group of leaders says whose turn it is. That may be wrong for a while: only the transactional id counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamtrain import _native, exits
from streamtrain.background import in_background
from streamtrain.build import build_digest
from streamtrain.compute.model import Model
from streamtrain.compute.state import attach, view
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import KafkaBroken, KafkaUnreachable, Replaced, SnapshotError, StreamtrainError
from streamtrain.job import Job
from streamtrain.job.registry_settings import RegistrySettings
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.group_member import GroupMember
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.transaction import Transactions
from streamtrain.log import get_logger
from streamtrain.record_sources.topic_source import TopicRecordSource
from streamtrain.run.heap import share_one_heap
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.leading import Ended, Got, Leading
from streamtrain.run.lease import Lease
from streamtrain.run.lineage import Lineage, StartFlags
from streamtrain.run.publication import Assembler, Sync
from streamtrain.run.roles.coordinator import tell
from streamtrain.run.start import Start
from streamtrain.run.watch import Watch
from streamtrain.topics.accepting import StateShape
from streamtrain.topics.chunks import Located
from streamtrain.topics.manifest import Slot

HELP = "folds what many hosts have learned and publishes it, on the host whose turn it is"
log = get_logger(__name__)

_TURN_S = 0.1  # between two looks at whose turn it is
_AT_ONCE = 64  # messages
_SEEN_S, _LOOK_S = 10.0, 0.02


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    job: dict[str, Any]
    kafka: dict[str, dict[str, str]]  # consumer, producer
    topics: dict[str, str]  # names by key
    host: str
    registry: Mapping[str, Any] = field(default_factory=dict)  # properties of its client; may hold secrets
    fresh: bool = False
    restore: int | None = None
    add_classes: Sequence[str] = ()
    module: Mapping[str, Any] | None = None  # the network of a new lineage, where it is not of layers


def run(config: Config) -> int:
    """One turn: a process leads once."""
    share_one_heap()
    ring = _native.CoordinatorEnd(attach(config.arena))
    group = f"{config.job['name']}.leader"
    with GroupMember(config.kafka["consumer"], group, config.topics["contributions"]) as member:
        turn = _Turn(member)
        while not turn.is_ours():
            if ring.stop():
                return exits.DONE
            turn.wait(_TURN_S)
        tell("leads", host=config.host)
        return _lead(config, ring, turn)


class _Turn:
    """Asks Kafka in a thread of its own whether it is this host's turn."""

    def __init__(self, member: GroupMember) -> None:
        self._member, self._partitions = member, frozenset[int]()
        self._looked = threading.Condition()
        threading.Thread(target=self._look, name="turn", daemon=True).start()

    def is_ours(self) -> bool:
        return bool(self._partitions)

    def wait(self, timeout_s: float) -> None:
        """Until the next look, or a time-out."""
        with self._looked:
            self._looked.wait(timeout_s)

    def _look(self) -> None:
        while True:
            self._partitions = self._member.look()
            with self._looked:
                self._looked.notify_all()
            time.sleep(_TURN_S)


def _lead(config: Config, ring: _native.CoordinatorEnd, turn: _Turn) -> int:
    job = replace(Job.from_effective(config.job), registry=RegistrySettings(config.registry))
    consumer = config.kafka["consumer"]
    admin = Admin(consumer["bootstrap.servers"], consumer)
    lease = Lease(job.name, consumer, config.topics, admin, mode="many")
    transactions = Transactions(config.kafka["producer"], job.name, lease)
    try:
        leading = _begin(config, job, ring, lease, transactions, admin)
        ended = leading.run(turn.is_ours)
    except Replaced:
        holder = lease.holder()
        if holder is None or holder.mode != "many":
            raise
        log.info(f"{holder.host} leads now")
        return exits.RUN_OVER
    except StreamtrainError as error:
        if not isinstance(error, KafkaBroken | KafkaUnreachable) and transactions.run is not None:
            transactions.end(lease.end(transactions.run, error.exit_code, str(error)))
        raise
    assert transactions.run is not None
    transactions.end(lease.end(transactions.run, exits.DONE, ended.value))
    return exits.DONE if ended is Ended.STOPPED else exits.RUN_OVER


def _begin(
    config: Config, job: Job, ring: _native.CoordinatorEnd, lease: Lease, transactions: Transactions, admin: Admin
) -> Leading:
    """Takes the job, and puts the newest snapshot's state in place, or publishes a new lineage's first."""
    arena, consumer = attach(config.arena), config.kafka["consumer"]
    model = Model(job.model_spec(), TorchModule.from_dict(config.module) if config.module else None)
    layout = model.layout.published(job.train.workers)
    taken = transactions.open()
    watch = Watch(taken, ControlTopic(consumer, config.topics["control"]).look)
    record_source = TopicRecordSource(job, consumer, admin)
    publisher = KafkaPublisher(record_source, transactions, watch, config.topics)
    messages = _Topic(consumer, config.topics, admin, publisher)
    slot = Slot(job.train.update_rows, arena.slot_layout.range_capacity)
    first = Sync(inbox=messages.begin, interval_ms=int(1000 * job.publish.interval_s))
    assembler = Assembler(job, taken, layout, slot, build_digest(), first)
    state = view(ring.mean_address(0), layout.state_bytes)
    start = Start(job, model, record_source, lease, publisher, assembler, _say_nothing)
    found = start.find(StartFlags(config.fresh, config.restore, False, config.add_classes), state)
    lineage = start.begin(found, state)
    ring.begin(round=lineage.round, learning_rate=job.optimizer.learning_rate, seed=lineage.seed)
    newest = _newest(publisher, lease, lineage)
    messages.assign(messages.begin if newest.manifest.inbox is None else newest.manifest.inbox)
    fold = _native.ContributionFold(arena)
    return Leading(
        job, ring, fold, StateShape.of(model.layout), lineage, (newest.manifest, newest.digest),
        assembler, publisher, messages, tell,
    )  # fmt: skip


def _newest(publisher: KafkaPublisher, lease: Lease, lineage: Lineage) -> Located:
    """The newest manifest, which is the lineage's; one that was just committed takes a moment to be seen."""
    until_s = time.monotonic() + _SEEN_S
    while True:
        found = publisher.answered(lease.newest)
        if found is not None and found.manifest.version == lineage.version:
            return found
        if time.monotonic() > until_s:
            raise SnapshotError(f"{lease.snapshots.name}: expected snapshot {lineage.version} as the newest")
        time.sleep(_LOOK_S)


def _say_nothing(event: str, **fields: object) -> None:
    """Leaves it to the contributor to say that a start is made."""


class _Topic:
    """The contributions topic, beside that of the records: a leading.Messages."""

    def __init__(
        self, kafka: Mapping[str, str], names: Mapping[str, str], admin: Admin, publisher: KafkaPublisher
    ) -> None:
        self._consumer, self._admin, self._publisher = KafkaConsumer.open(Purpose.FOLLOW, kafka), admin, publisher
        self._name, self._records = names["contributions"], names["records"]
        self.begin, _ = self._consumer.bounds(self._name, 0)

    def assign(self, offset: int) -> None:
        self._consumer.assign(self._name, [(0, max(offset, self.begin))])

    def read(self, timeout_s: float) -> list[Got]:
        found = self._consumer.consume(_AT_ONCE, timeout_s)
        self._consumer.hear()
        at_s = time.monotonic()
        return [Got(each.offset, each.key, each.value, at_s) for each in found if not each.error]

    def ends(self) -> dict[int, int]:
        ends = self._publisher.answered(lambda: self._admin.ends([self._records]))[self._records]
        return {} if ends is None else dict(enumerate(ends.ends))

    def delete(self, below: int) -> None:
        in_background(self._delete, below, name="delete")

    def _delete(self, below: int) -> None:
        try:
            self._admin.delete_records(self._name, 0, below)
        except StreamtrainError as error:
            log.debug("contributions that are published could not be deleted", reason=str(error))
