"""The contributor: on each of many hosts, sends what a round has learned, and begins the next from the snapshot made of
it.

Trains nothing and publishes nothing; a leader folds what all hosts send.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamtrain import _native, exits
from streamtrain.compute.model import Model
from streamtrain.compute.state import attach
from streamtrain.compute.torch import TorchModule
from streamtrain.job import Job
from streamtrain.job.registry_settings import RegistrySettings
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.kafka.transaction import replaced
from streamtrain.log import get_logger
from streamtrain.run.contributing import Contributing, Ended
from streamtrain.run.heap import share_one_heap
from streamtrain.run.lineage import check_fit
from streamtrain.run.roles.coordinator import tell
from streamtrain.run.sender import Sender
from streamtrain.run.snapshot_feed import Seen, SnapshotFeed
from streamtrain.run.watch import Watch

HELP = "sends what this host's rounds have learned, where there are many hosts"
log = get_logger(__name__)

_LOOK_S = 0.1
_SAY_S = 10.0


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    job: dict[str, Any]
    kafka: dict[str, dict[str, str]]  # consumer, producer
    topics: dict[str, str]  # names by key
    host: str
    partitions: Sequence[int]  # of the records topic
    gained: bool = True  # some of the partitions may have been another host's until now
    registry: Mapping[str, Any] = field(default_factory=dict)  # properties of its client; may hold secrets
    module: Mapping[str, Any] | None = None  # the network, where it is not of layers


def run(config: Config) -> int:
    share_one_heap()
    job = replace(Job.from_effective(config.job), registry=RegistrySettings(config.registry))
    ring = _native.CoordinatorEnd(attach(config.arena))
    model = Model(job.model_spec(), TorchModule.from_dict(config.module) if config.module else None)
    consumer = config.kafka["consumer"]
    watch = Watch(None, ControlTopic(consumer, config.topics["control"]).look)
    with (
        SnapshotFeed(SnapshotTopic(job.name, consumer["bootstrap.servers"], consumer)) as feed,
        Sender(job, model, config.kafka["producer"], config.topics["contributions"], config.host) as sender,
    ):
        base = _first(ring, feed, watch, config)
        if base is None:  # it has trained nothing
            return exits.RUN_OVER if ring.stop() == _native.Stop.LEAVE else exits.DONE
        check_fit(job, base.stored.manifest)
        contributing = Contributing(job, model, ring, sender, config.partitions, feed, watch, tell)
        contributing.begin(base)
        sender.hello()
        found = base.stored.manifest
        tell("started", resumed=True, version=found.version, run=found.run.number, rows=found.rows_seen)
        ended = contributing.run()
        newest = contributing.newest
    if ended is Ended.DONE:
        tell("ended", version=newest.version, rows=newest.rows_seen, dead_letters={})
        return exits.DONE
    tell("over", why=ended.value)
    return exits.RUN_OVER


def _first(ring: _native.CoordinatorEnd, feed: SnapshotFeed, watch: Watch, config: Config) -> Seen | None:
    """The first snapshot to go on from, once a leader has the job; None where the run is to end before.

    Where partitions were another host's until now, what that has to send of them comes first: with the next snapshot,
    or not at all once two intervals have passed.
    """
    first = seen = None
    say_s = time.monotonic() + _SAY_S
    while not ring.stop():
        ring.beat()
        if watch.replaced_by is not None:
            raise replaced(watch.replaced_by)
        seen = feed.next(_LOOK_S) or seen
        first, now_s = first or seen, time.monotonic()
        if seen is not None and watch.is_led:
            manifest = seen.stored.manifest
            others = any(each.host != config.host for each in manifest.contributions)
            waited = now_s > seen.at_s + 2 * (manifest.interval_ms or 0) / 1000
            if not (config.gained and others) or seen is not first or waited:
                return seen
        elif now_s > say_s:
            say_s = now_s + _SAY_S
            log.info("waiting for a host that leads")
    return None
