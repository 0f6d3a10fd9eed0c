"""The data folder of an embedded Kafka: what it holds, who runs on it, and the ports it is bound to."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import random
import socket
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from streamtrain.broker.process import Process
from streamtrain.errors import UserMistake, writing

HOST = "127.0.0.1"  # not `localhost`, which may be ::1 first
PORTS = range(20_000, 32_000)  # below the ephemeral range: a connect loop on a port of that can connect to itself
RECORD = "broker.json"


@dataclass(frozen=True)
class Node:
    """One Kafka process of the folder: its two ports and, while it runs, its process."""

    number: int
    port: int
    controller_port: int
    pid: int = 0
    started: int = 0

    @property
    def process(self) -> Process:
        return Process(self.pid, self.started)


@dataclass(frozen=True)
class Record:
    """The content of `broker.json`."""

    cluster_id: str
    nodes: tuple[Node, ...]
    kafka_home: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    fast_start: bool = False

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    def running(self) -> bool:
        """Returns whether any of its processes lives. A record that dead ones left behind counts as not running."""
        return any(node.process.alive() for node in self.nodes)

    def save(self, data: Path) -> None:
        scratch = data / (RECORD + ".new")
        with writing(data, f"Kafka's data, such as {RECORD},"):
            scratch.write_text(json.dumps(asdict(self), indent=1) + "\n")
            os.replace(scratch, data / RECORD)


def load_record(data: Path) -> Record | None:
    """The folder's record, None if it has none. UserMistake if it cannot be read."""
    try:
        fields = json.loads((data / RECORD).read_text())
        nodes = tuple(Node(**node) for node in fields.pop("nodes"))
        return Record(nodes=nodes, **fields)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserMistake(
            f"{data / RECORD}: expected the record of an embedded Kafka, got: {error}; choose another --data folder"
        ) from error


@contextlib.contextmanager
def locked(data: Path) -> Iterator[None]:
    """Hold the folder while starting or stopping; the kernel frees it when the holder dies.

    A folder that is new or empty becomes the user's alone: whoever reads it reads every topic. One that holds other
    things is left as it is.
    """
    with writing(data, "Kafka's data"):
        data.mkdir(parents=True, exist_ok=True)
        if next(data.iterdir(), None) is None:
            data.chmod(0o700)
        stream = (data / "broker.lock").open("w")
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def plan_record(data: Path, old: Record | None, port: int | None, count: int) -> Record:
    """The record to start with: the folder's own ports again where they are free and no other was asked for."""
    if old is not None and len(old.nodes) != count:
        raise UserMistake(
            f"{data}: holds a Kafka of {len(old.nodes)} node(s), asked for {count}; choose another folder"
        )
    if port is not None and not port_free(port):
        raise UserMistake(f"port {port} is taken; choose another with --port, or stop what listens there")
    taken = set() if port is None else {port}
    nodes = []
    for number in range(1, count + 1):
        before = old.nodes[number - 1] if old is not None else Node(number, 0, 0)
        listen = port if number == 1 and port is not None else _choose(before.port, taken)
        nodes.append(Node(number, listen, _choose(before.controller_port, taken)))
    if old is not None:
        return replace(old, nodes=tuple(nodes))
    # Kafka's ids are 16 bytes in URL-safe base64 and may not begin with "-", which its tool takes for a flag
    cluster_id = base64.urlsafe_b64encode(b"\x00" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
    return Record(cluster_id, tuple(nodes))


def _choose(port: int, taken: set[int]) -> int:
    for candidate in [port, *random.sample(PORTS, 200)]:
        if candidate and candidate not in taken and port_free(candidate):
            taken.add(candidate)
            return candidate
    raise UserMistake(f"no free port found between {PORTS.start} and {PORTS.stop}; name one with --port")


def port_free(port: int) -> bool:
    """Returns whether a server could listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
