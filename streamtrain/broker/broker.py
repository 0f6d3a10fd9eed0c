"""Start, find and stop the embedded Kafka of a data folder; `streamtrain broker`, the demo and the tests use it."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamtrain.broker.archive import make_archive
from streamtrain.broker.data_folder import Record, load_record, locked, plan_record
from streamtrain.broker.distribution import Distribution, find_distribution
from streamtrain.broker.node import loaded_classes, log_file, log_tail, node_folder, prepare_node
from streamtrain.broker.process import Process
from streamtrain.errors import KafkaUnreachable, UserMistake, writing
from streamtrain.interruption import uninterrupted
from streamtrain.kafka.settings import Purpose, client_settings

log = logging.getLogger(__name__)

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class BrokerStatus:
    """The status that `streamtrain broker status` shows."""

    data: Path
    running: bool
    bootstrap: str | None
    pids: tuple[int, ...]


class Broker:
    """An embedded Kafka that answers. As a context manager it stops what it started, and only that.

    Nodes are counted from 0. After `kill` or `stop`, `start` brings them back on the same ports and data.
    """

    def __init__(self, data: Path, record: Record, detached: bool, temporary: bool, found: bool) -> None:
        self.data = data
        self.found = found
        self._record = record
        self._detached = detached
        self._temporary = temporary
        self._distribution: Distribution | None = None
        self._processes: list[Process] = [node.process for node in record.nodes]

    @property
    def bootstrap(self) -> str:
        """`host:port` of every node, joined by commas."""
        return self._record.bootstrap

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that live."""
        return tuple(process.pid for process in self._processes if process.alive())

    def start(self) -> None:
        """Start the nodes that are down and wait until all answer; KafkaUnreachable with the log's tail else."""
        if self._distribution is None:
            home = self._record.kafka_home
            self._distribution = find_distribution(Path(home) if home else None)
        for index, node in enumerate(self._record.nodes):
            if not self._processes[index].alive():
                with writing(self.data, "Kafka's data"):
                    command = prepare_node(self._distribution, self.data, self._record, node)
                log_of = log_file(node_folder(self.data, node))
                with uninterrupted():
                    self._processes[index] = Process.spawn(command, log_of, self._detached)
        self._save()
        self._wait_ready()
        for node in self._record.nodes:
            make_archive(self._distribution, loaded_classes(node_folder(self.data, node)))

    def stop(self) -> None:
        """Stop all nodes cleanly. A temporary data folder is removed."""
        if self._temporary:
            self.kill()
            shutil.rmtree(self.data, ignore_errors=True)
            return
        for process in self._processes:  # all at once: the last of a quorum cannot say good-bye to the others
            process.terminate()
        for process in self._processes:
            if not process.wait(STOP_TIMEOUT_S):
                process.kill()
        try:
            self._save()
        except UserMistake as error:  # it still names the processes that have ended, which does no harm
            log.warning("%s", error)

    def kill(self, node: int | None = None) -> None:
        """SIGKILL one node, or all."""
        for index, process in enumerate(self._processes):
            if node is None or node == index:
                process.kill()

    def _save(self) -> None:
        nodes = []
        for node, process in zip(self._record.nodes, self._processes, strict=True):
            living = process.alive()
            nodes.append(replace(node, pid=process.pid * living, started=process.started * living))
        self._record = replace(self._record, nodes=tuple(nodes))
        self._record.save(self.data)

    def _wait_ready(self) -> None:
        """Ready is a metadata answer of our cluster that names every node; an open port says nothing."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        settings: dict[str, Any] = {**client_settings(Purpose.START, {}, {"bootstrap.servers": self.bootstrap})}
        settings["error_cb"] = lambda _error: None
        admin = AdminClient(settings)
        while True:
            try:
                answer = admin.list_topics(timeout=1)
                if answer.cluster_id == self._record.cluster_id and len(answer.brokers) == len(self._processes):
                    return
            except KafkaException:
                pass
            for node, process in zip(self._record.nodes, self._processes, strict=True):
                if not process.alive() or time.monotonic() > deadline:
                    state = "did not answer in time" if process.alive() else "ended while starting"
                    folder = node_folder(self.data, node)
                    what = f"the embedded Kafka at {self.bootstrap} {state}; the end of its log"
                    raise KafkaUnreachable(f"{what} ({folder}):\n{log_tail(folder)}")

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.found:
            self.stop()


def start_broker(
    data: Path | None = None,
    port: int | None = None,
    nodes: int = 1,
    *,
    detached: bool = False,
    kafka_home: Path | None = None,
    properties: Mapping[str, str] | None = None,
    fast_start: bool = False,
) -> Broker:
    """Start Kafka on the folder `data` (None: a temporary one, removed at the end) and wait until it answers.

    If one already runs on the folder, that one is returned with `found` set, and leaving its `with` does not stop it.
    Not detached, it is killed when the calling thread ends. `properties` are Kafka's own and win over ours.
    `fast_start` halves the time to start at the cost of the highest throughput: for a short life.
    Raises UserMistake for a taken port or a missing installation, KafkaUnreachable if it does not come up.
    """
    if nodes < 1:
        raise UserMistake(f"nodes: expected at least 1, got {nodes}")
    temporary = data is None
    folder = Path(tempfile.mkdtemp(prefix="streamtrain-kafka-")) if data is None else data.absolute()
    with locked(folder):
        old = load_record(folder)
        if old is not None and old.running():
            _check_port(folder, old, port, "stop it first")
            return Broker(folder, old, detached=True, temporary=False, found=True)
        record = plan_record(folder, old, port, nodes)
        home = str(kafka_home.absolute()) if kafka_home is not None else None
        record = replace(record, kafka_home=home, properties=dict(properties or {}), fast_start=fast_start)
        broker = Broker(folder, record, detached, temporary, found=False)
        try:
            broker.start()
        except BaseException:
            broker.kill()
            broker.stop()
            raise
        log.info("Kafka runs at %s", broker.bootstrap)
        return broker


def find_broker(data: Path, port: int | None = None) -> Broker | None:
    """The Kafka that runs on the folder `data`, or None. Raises UserMistake where it runs on another port."""
    record = load_record(data)
    if record is None or not record.running():
        return None
    _check_port(data, record, port, "leave --port out, or name its folder with --data")
    return Broker(data.absolute(), record, detached=True, temporary=False, found=True)


def _check_port(folder: Path, record: Record, port: int | None, advice: str) -> None:
    if port is not None and port != record.nodes[0].port:
        raise UserMistake(f"{folder}: its Kafka already runs at {record.bootstrap}, asked: port {port}; {advice}")


def broker_status(data: Path, port: int | None = None) -> BrokerStatus:
    """Returns whether a Kafka runs on the folder `data`, and where. A record that dead processes left counts as not
    running.

    Raises UserMistake if one runs on another port than `port`.
    """
    broker = find_broker(data, port)
    if broker is None:
        return BrokerStatus(data, False, None, ())
    return BrokerStatus(data, True, broker.bootstrap, broker.pids)


def stop_broker(data: Path, port: int | None = None) -> bool:
    """Stop the Kafka that runs on the folder `data`; False if none did. Raises UserMistake where that is on another
    port than `port`."""
    if load_record(data) is None:
        return False
    with locked(data):
        broker = find_broker(data, port)
        if broker is None:
            return False
        broker.stop()
        return True
