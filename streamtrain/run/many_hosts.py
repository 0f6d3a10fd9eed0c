"""The part of a supervisor in a job of many hosts: a share of the partitions, and a leader's process.

That process outlives runs: it waits for its turn to lead, and leads whatever this host trains.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from streamtrain import _native, exits
from streamtrain.compute.model import Model
from streamtrain.job import Job
from streamtrain.kafka.group_member import GroupMember
from streamtrain.log import get_logger
from streamtrain.run.arena import make_fold_arena
from streamtrain.run.host import Child, Event, Host, HostOptions, RunOver

log = get_logger("streamtrain.run.supervisor")  # the user knows one word for what watches a run

_LAST_WORD_S = 10.0  # for the leader to end its run
_LEADS_WITHIN_S = 15.0  # of its start: a leader that has died keeps the role for ten seconds
# options that the first to lead obeys, and nobody after it
_OF_A_START: dict[str, Any] = {"fresh": False, "restore": None, "add_classes": []}
_AGAIN_S = 1.0  # after a leader's process has died


def hosts_group(job: str) -> str:
    """Returns the group whose members are the job's hosts."""
    return f"{job}.hosts"


class ManyHosts:
    """This host's part in a job of many. `leader`: the config of its leader's process, but for the arena."""

    def __init__(
        self,
        job: Job,
        model: Model,
        leader: Mapping[str, Any],
        options: HostOptions,
        on_event: Callable[[Event], None],
    ) -> None:
        self._leader, self._on_event = leader, on_event
        self._group = GroupMember(job.kafka_consumer(), hosts_group(job.name), str(job.topic("records").name))
        self._host = Host(lambda: make_fold_arena(job, model), {}, options, on_event)
        self._child: Child | None = None
        self._events: queue.Queue[Event] = queue.Queue()
        self._again_s = 0.0
        given = [f"--{name.replace('_', '-')}" for name in _OF_A_START if leader[name] not in (None, False, [])]
        self._of_the_start, self._leads_until_s = given, time.monotonic() + _LEADS_WITHIN_S
        self.partitions: frozenset[int] = frozenset()

    def look(self) -> frozenset[int]:
        """Returns the partitions that are this host's now; keeps the leader's process alive and passes its events on.

        RunOver where the leader's process ends the command.
        """
        self._tend()
        self.partitions = self._group.look()
        return self.partitions

    def _tend(self) -> None:
        while not self._events.empty():
            event = self._events.get()
            if event["event"] == "leads":  # what a start was to do is done once
                self._leader, self._of_the_start = {**self._leader, **_OF_A_START}, []
            self._on_event(event)
        if self._of_the_start and time.monotonic() > self._leads_until_s:
            options = ", ".join(self._of_the_start)
            found = "expected that no other host trains the job, found that one leads; stop all hosts first"
            raise RunOver(exits.MISTAKE, f"{options}: {found}")
        for child, code in self._host.ended():
            self._child = None
            if code in exits.OF_ERRORS and code != exits.UNREACHABLE:  # the contributor says that, if it is for good
                raise RunOver(code, f"{child.label} ended with exit code {code}", is_reported=True)
            if code != exits.RUN_OVER:
                log.warning("the leader's process ended and is started again", exit_code=code)
            self._again_s = time.monotonic() + _AGAIN_S
        if self._child is None and time.monotonic() >= self._again_s:
            self._host.begin()
            self._child = self._host.spawn("leader", "leader", self._leader, heard=True)
            threading.Thread(target=self._read, args=(self._child.process.stdout,), daemon=True).start()

    def _read(self, lines: Any) -> None:
        for line in lines:
            try:
                self._events.put(json.loads(line))
            except ValueError:  # the process was killed within a line
                log.debug("unreadable event", line=line[:200])

    def close(self) -> None:
        """Leaves: the leader ends its run, and others have the partitions."""
        self._host.tell(_native.Stop.DRAIN)
        if self._child is not None:
            try:
                self._child.process.wait(_LAST_WORD_S)
            except subprocess.TimeoutExpired:
                log.warning("the leader's process did not end", waited_s=_LAST_WORD_S)
        self._host.end()
        self._group.close()
