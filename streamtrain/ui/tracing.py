"""Where snapshots of a job come from: manifest, round log, run and the lineage's beginning, read from the topics.

In threads of their own, and kept for as many as were asked for last.
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
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.topic import topic
from streamtrain.ui.following import Following

_MOST = 32  # snapshots that are remembered
_MOST_LOGS = 200  # that are looked at for where partitions begin
_VERSION = re.compile(r"\bversion\W{1,6}?(?:b\W)?(\d{1,18})\b")
_DIGEST = re.compile(r"\bdigest\W{1,6}?(?:b\W)?([0-9a-f]{64})\b")


class Named(NamedTuple):
    """The snapshot that a prediction's headers name."""

    version: int
    digest: str | None  # hex


def named(text: str) -> Named | None:
    """Of headers as they are pasted: a line each, JSON, name=value, what `streamtrain read` shows; None of others."""
    version, digest = _VERSION.search(text), _DIGEST.search(text)
    return None if version is None else Named(int(version[1]), None if digest is None else digest[1])


class Begin(NamedTuple):
    """Where the round logs of a lineage begin that are left: with which version and round, at which place of each
    partition, as far as that was looked for."""

    version: int
    round: int
    places: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Traced:
    """What the topics still tell of one version."""

    version: int
    digest: bytes | None  # None where nothing tells it
    located: Located | None  # None: the topic keeps it no more
    log: RoundLog | None  # of the rounds since its parent; None: removed by retention, or there were none
    begin: Begin | None  # None: no round log of its lineage is left
    control: Control


class Tracing:
    """Of a job that is followed."""

    stays = False

    def __init__(self, following: Following) -> None:
        self._following = following
        self._asked: OrderedDict[int, Future[Traced]] = OrderedDict()

    def close(self) -> None:
        """Who is still reading is left behind."""

    def of(self, version: int) -> Future[Traced]:
        """What is found, or why not; one that failed is asked for again at the next call."""
        known = self._asked.get(version)
        if known is None or (known.done() and known.exception() is not None):
            known = in_background(self._trace, version, name=f"ui-trace-{self._following.name}")
            self._asked[version] = known
            while len(self._asked) > _MOST:
                self._asked.popitem(last=False)
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


def _begin(logs: Iterable[RoundLog], partitions: int) -> Begin | None:
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
