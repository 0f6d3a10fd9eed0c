"""Traces the source of a job's snapshots: manifest, round log, run and the lineage's start, read from the topics.

Threads of their own read them. The results of the newest requests are kept.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import NamedTuple

from streamtrain.background import in_background
from streamtrain.errors import UserMistake
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.round_logs import round_logs_from
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import Control
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.topic import topic
from streamtrain.ui.followed_job import Following

_MOST = 32  # snapshots that are remembered
_MOST_LOGS = 200  # that are looked at for where partitions begin
_VERSION = re.compile(r"\bversion\W{1,6}?(?:b\W)?(\d{1,18})\b")
_DIGEST = re.compile(r"\bdigest\W{1,6}?(?:b\W)?([0-9a-f]{64})\b")


class Named(NamedTuple):
    """The snapshot that a prediction's headers name."""

    version: int
    digest: str | None  # hex


def named(text: str) -> Named | None:
    """Returns the snapshot that pasted headers name, or None if they name none.

    The headers may be one per line, JSON, name=value, or the output of `streamtrain read`.
    """
    version, digest = _VERSION.search(text), _DIGEST.search(text)
    return None if version is None else Named(int(version[1]), None if digest is None else digest[1])


class Begin(NamedTuple):
    """The start of the round logs that are left of a lineage: their first version and round, and the first position
    in each partition, as far as the search went."""

    version: int
    round: int
    places: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Traced:
    """The facts that the topics still have about one version."""

    version: int
    digest: bytes | None  # None where nothing tells it
    located: Located | None  # None: the topic keeps it no more
    log: RoundLogs | None  # of the rounds since its parent; None: removed by retention, or there were none
    begin: Begin | None  # None: no round log of its lineage is left
    control: Control


class Tracing:
    """Traces the snapshots of a followed job."""

    stays = False

    def __init__(self, following: Following) -> None:
        self._following = following
        self._futures: OrderedDict[int, Future[Traced]] = OrderedDict()

    def close(self) -> None:
        """Leaves running reads behind; it does not wait for them."""

    def of(self, version: int) -> Future[Traced]:
        """Returns the future of a trace, or of its error. After a failure, the next call tries again."""
        known = self._futures.get(version)
        if known is None or (known.done() and known.exception() is not None):
            known = in_background(self._trace, version, name=f"ui-trace-{self._following.name}")
            self._futures[version] = known
            while len(self._futures) > _MOST:
                self._futures.popitem(last=False)
        return known

    def _trace(self, version: int) -> Traced:
        job = self._following.job
        if job is None:
            raise UserMistake(f"{self._following.name}: expected a job with a snapshot, found none yet")
        with self._following.snapshots as snapshots:
            located = snapshots.manifest_of(version)
        settings = {**job.kafka_consumer(), "bootstrap.servers": job.kafka.bootstrap}
        rounds = str(job.topic("rounds").name)
        log = next(round_logs_from(settings, rounds, lambda part: part.version >= version), None)
        log = log if log is not None and log.version == version else None
        lineage = located.manifest.lineage if located is not None else log.lineage if log is not None else ""
        after = round_logs_from(settings, rounds, lambda part: part.lineage == lineage or part.version > version)
        partitions = 0 if located is None else len(located.manifest.positions.partitions)
        begin = _begin(takewhile(lambda each: each.lineage == lineage and each.version <= version, after), partitions)
        with ControlTopic(settings, topic("control").name(job.name)) as control:
            known = control.look()
        digest = located.digest if located is not None else log.digest if log is not None else None
        return Traced(version, digest, located, log, begin, known)


def _begin(logs: Iterable[RoundLogs], partitions: int) -> Begin | None:
    """Looks until each partition has had a range."""
    found: Begin | None = None
    places: dict[int, tuple[int, int]] = {}
    for log in islice(logs, _MOST_LOGS):
        found = found or Begin(log.version, int(log.rounds["round"][0]), places)
        for part in log.ranges:
            places.setdefault(int(part["partition"]), (int(part["from_offset"]), int(part["from_row"])))
        if len(places) >= partitions:
            break
    return found
