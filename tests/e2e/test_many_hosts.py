"""A job that many hosts train: they join, lead, die and come back, and every row is trained once."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import psutil
from waiting import wait_for

from tests.e2e.harness import LiveJob, processes_of

DROPOUT = 'layers = [ { dense = 16, activation = "relu" }, { dropout = 0.2 } ]'


class Hosts:
    """The hosts of one job on this machine, and the rows they are given."""

    def __init__(self, job: LiveJob) -> None:
        self.job = job
        self.produced = 0
        self.running: dict[str, Any] = {}
        self.events: dict[str, list[dict[str, Any]]] = {}

    def start(self, name: str, *options: str) -> None:
        running = self.job.start("train", "--host-id", name, "--metrics-port", "0", *options)
        self.running[name], self.events[name] = running, []
        threading.Thread(target=self._read, args=(name, running.process.stdout), daemon=True).start()

    def _read(self, name: str, lines: Any) -> None:
        for line in lines:
            self.events[name].append(json.loads(line))

    def produce(self, count: int = 300) -> None:
        self.produced += count
        self.job.produce(count, seed=self.produced)

    def has_said(self, name: str, event: str) -> bool:
        return any(each["event"] == event for each in self.events[name])

    def train_with(self, *names: str) -> None:
        """Gives rows until a snapshot is made of what exactly these hosts have sent."""

        def together() -> bool:
            self.produce()
            return {each.host for each in self.job.newest().manifest.contributions} == {*names}

        wait_for(together, 120)

    def train_all(self) -> None:
        """Until all rows are in a snapshot."""
        wait_for(lambda: self.job.newest().manifest.rows_seen == self.produced, 120)

    def process(self, name: str, role: str) -> psutil.Process:
        """Once there is one."""

        def find() -> psutil.Process | None:
            found = processes_of(self.running[name].process.pid)
            return next((each for each in found if each.name() == role), None)

        found = wait_for(find)
        assert isinstance(found, psutil.Process)
        return found

    def end(self, name: str) -> int:
        process = self.running[name].process
        process.send_signal(signal.SIGTERM)
        return int(process.wait(120))

    def kill(self, name: str) -> None:
        """The machine is gone: the supervisor's processes die with it."""
        process = self.running[name].process
        process.kill()
        process.wait(60)


def test_hosts_join_lead_die_and_come_back_and_every_row_is_trained_once(kafka: Any, tmp_path: Path) -> None:
    """Fails where a row is lost or trained twice by whoever comes or goes, where nobody leads on, or where replay of
    what hosts with random numbers of their own have trained has other bits."""
    job = LiveJob(
        kafka, tmp_path, partitions=3, hosts="many", workers=1, averaging_frequency='"auto"', publish_interval="300ms",
        keep=500, model=DROPOUT,
    )  # fmt: skip
    hosts = Hosts(job)
    hosts.start("a")
    wait_for(lambda: hosts.has_said("a", "started"), 60)
    hosts.train_with("a")
    hosts.start("b")
    hosts.start("c")
    hosts.train_with("a", "b", "c")
    hosts.kill("a")  # it leads
    hosts.train_with("b", "c")
    hosts.process("b", "contributor").kill()
    hosts.process("c", "worker-0").kill()
    hosts.train_with("b", "c")
    hosts.start("a")
    hosts.train_with("a", "b", "c")
    hosts.start("d", "--fresh")  # which would forget what the others have learned, as soon as it leads
    assert hosts.running["d"].process.wait(120) == 2
    assert "--fresh: expected that no other host trains the job" in hosts.running["d"].errors()
    hosts.train_all()
    assert [hosts.end(name) for name in "bca"] == [0, 0, 0]
    job.check(hosts.produced)
    assert [run.mode for run in job.control().runs.values()][:2] == ["many", "many"]
