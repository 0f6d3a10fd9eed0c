"""A run's lease of its job: the topics say which run owns the job, and which snapshot is the newest.

Used by the coordinator.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping

from streamtrain.build import build_digest
from streamtrain.errors import CheckFailed, SnapshotError
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.control import ControlTopic, take_back
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.kafka.transaction import Unfinished
from streamtrain.topics import control
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import Newest, RunEnd, RunEntry
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message, Topic, all_topics


class Lease:
    """Snapshots and control of one job; opens their readers. `names`: the topics' by key. One thread at a time."""

    def __init__(
        self, job: str, kafka: Mapping[str, str], names: Mapping[str, str], admin: Admin, mode: str = "one"
    ) -> None:
        self._job, self._mode = job, mode
        self._admin = admin
        self._names = names
        self._control_name = names["control"]
        self.control = ControlTopic(kafka, self._control_name)
        self.snapshots = SnapshotTopic(job, kafka["bootstrap.servers"], kafka)

    def holder(self) -> RunEntry | None:
        return self.control.look().holder

    def older_build_runs(self) -> bool:
        known = self.control.look()
        holder = known.holder
        return holder is not None and holder.run.number not in known.ends and holder.build != build_digest()

    def newest(self) -> Located | None:
        try:
            return self.snapshots.newest_manifest()
        except SnapshotError:
            return None  # what is wrong with it is said when it is to be loaded

    def gone(self, topics: Iterable[str]) -> str | None:
        """One of these that the controller does not know any more."""
        return next((topic for topic in topics if self._admin.absent(topic)), None)

    def unfinished(self) -> list[Unfinished]:
        """Returns the partitions with a transaction that is neither committed nor aborted."""
        return [
            Unfinished(self._names[topic.key], partition, topic.written == "shared")
            for topic in all_topics().values() if topic.written is not None
            for partition in self._without_end(self._names[topic.key], self._partitions(topic))
        ]

    def _partitions(self, topic: Topic) -> int:
        if topic.fixed_partitions:
            return topic.partitions
        name = self._names[topic.key]
        state = self._admin.describe([name])[name]
        return 0 if state is None else state.partitions

    def _without_end(self, name: str, partitions: int) -> list[int]:
        stable, ends = self._admin.last_stable(name, partitions), self._admin.high_watermarks(name, partitions)
        return [partition for partition, (at, end) in enumerate(zip(stable, ends, strict=True)) if at < end]

    def entry(self, run: Run) -> tuple[str, Message]:
        """The run's own entry, for its first transaction."""
        now_ms = time.time_ns() // 1_000_000
        run_entry = RunEntry(run, self._job, socket.gethostname(), os.getpid(), now_ms, build_digest(), self._mode)
        return self._control_name, control.run_message(run_entry)

    def end(self, run: Run, exit_code: int, reason: str) -> tuple[str, Message]:
        """Returns the message that the run writes when it ends."""
        return self._control_name, control.end_message(RunEnd(run, exit_code, reason, time.time_ns() // 1_000_000))

    def published_last(self) -> Newest | None:
        """Returns what control names as published last; None if it names nothing."""
        return self.control.look().newest

    def check_published_last(self, newest: Located | None, last: Newest | None) -> None:
        """SnapshotError where the newest manifest is not the one control names: the topic has lost snapshots since.

        Where control names none (it was deleted and made anew) the manifest stands alone.
        """
        if last is None or (newest is not None and newest.digest == last.digest):
            return
        found, version, name = "none", 0, self.snapshots.name
        if newest is not None:
            version = newest.manifest.version
            found = f"version {version}, digest {newest.digest.hex()[:12]}… at {name}@{newest.offset}"
        digest = f"{last.digest.hex()[:12]}…"
        expected = f"{name}: expected version {last.version}, digest {digest}, which was published last"
        mend = take_back(self.snapshots.bootstrap, self._control_name, control.NEWEST_KEY)
        if last.version - version > control.LEAP:  # --fresh would go on above it, and then no version is left
            why = f"no trainer has counted so far, another program wrote key newest of {self._control_name}"
            raise CheckFailed(f"{expected}, found {found}; {why}; {mend}")
        raise SnapshotError(
            f"{expected}, found {found}; was the topic deleted, or did its broker lose what it held? Bring that back. "
            f"If another program wrote key newest of {self._control_name}: {mend}"
        )
