"""One Kafka process: its properties, its formatted folder, its command line."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from streamtrain.broker.archive import recording
from streamtrain.broker.data_folder import HOST, Node, Record
from streamtrain.broker.distribution import Distribution
from streamtrain.broker.fencing import controller_alone, crashed, fenced, wait_until_fenced
from streamtrain.broker.process import Process
from streamtrain.errors import KafkaUnreachable
from streamtrain.interruption import uninterrupted

LOG_TAIL_LINES = 15
FORMAT_TIMEOUT_S = 60
QUICK_COMPILER = ("-XX:TieredStopAtLevel=1",)  # 1.4 s of processor time until Kafka answers instead of 2.5

# log4j2 in its properties form; Kafka's own file is not in the jars
LOG4J = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss} %p %c{1} %m%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
"""


def server_properties(record: Record, node: Node, folder: Path) -> dict[str, str]:
    """The properties of one node; `record.properties` win."""
    count = len(record.nodes)
    voters = ",".join(f"{other.number}@{HOST}:{other.controller_port}" for other in record.nodes)
    in_sync = str(2 if count > 2 else 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "log"),
        "auto.create.topics.enable": "false",  # a misspelt topic is a mistake, not a new topic
        "default.replication.factor": str(count),
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": str(count),
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": str(count),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": str(count),
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        # of several the others take over soon, and a killed one can only then register again; one alone has nobody to
        # leave to, and would lose its partitions when its machine is busy. Longer than a start may take it must not be:
        # where fencing failed, the start waits for it
        "broker.session.timeout.ms": "5000" if count > 1 else "30000",
        "broker.heartbeat.interval.ms": "1000",
        # the default of 10 s would double the time a dead producer's transaction hides what follows it
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),  # of the default 128 MiB nearly all would lie idle
        **record.properties,
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def node_folder(data: Path, node: Node) -> Path:
    return data / f"node{node.number}"


def prepare_node(distribution: Distribution, data: Path, record: Record, node: Node) -> list[str]:
    """Formats the node's folder if it is new; returns the command that starts it."""
    folder = node_folder(data, node).resolve()
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    properties = folder / "server.properties"
    settings = server_properties(record, node, folder)
    write_properties(properties, settings)
    if not (folder / "log" / "meta.properties").exists():
        _format(distribution, record, properties, folder)
    elif len(record.nodes) == 1 and crashed(folder / "log") and not fenced(folder / "log", node.number):
        _fence(distribution, settings, folder, node)
    heap = "-Xmx512m" if len(record.nodes) == 1 else "-Xmx384m"
    jvm = (heap, *(QUICK_COMPILER if record.fast_start else ()), *_jvm(folder))
    jvm += recording(distribution, loaded_classes(folder))
    return distribution.command("kafka.Kafka", str(properties), jvm=jvm)


def _fence(distribution: Distribution, settings: dict[str, str], folder: Path, node: Node) -> None:
    properties = folder / "fencing.properties"
    write_properties(properties, controller_alone(settings))
    jvm = ("-Xmx256m", *QUICK_COMPILER, *_jvm(folder))
    command = distribution.command("kafka.Kafka", str(properties), jvm=jvm)
    with ExitStack() as opened:
        with uninterrupted():
            controller = Process.spawn(command, folder / "fencing.log", detached=False)
            opened.callback(controller.kill)
        wait_until_fenced(controller, folder / "log", node.number)


def _jvm(folder: Path) -> tuple[str, ...]:
    (folder / "log4j2.properties").write_text(LOG4J)
    return (
        "-XX:-UsePerfData",  # no file in the system's folder for temporary ones
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
    )


def _format(distribution: Distribution, record: Record, properties: Path, folder: Path) -> None:
    jvm = ("-Xmx128m", *QUICK_COMPILER, "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder / 'tmp'}")
    command = distribution.command(
        "kafka.tools.StorageTool", "format", "-t", record.cluster_id, "-c", str(properties), jvm=jvm
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise KafkaUnreachable(
            f"{folder}: Kafka's storage tool ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )


def loaded_classes(folder: Path) -> Path:
    """The names of the classes the node loads, while they are kept nowhere."""
    return folder / "tmp" / "classes"


def log_file(folder: Path) -> Path:
    return folder / "kafka.log"


def log_tail(folder: Path) -> str:
    """The last lines the node wrote, for an error's text."""
    try:
        lines = log_file(folder).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "(it wrote nothing)"
    return "\n".join(lines[-LOG_TAIL_LINES:]) or "(it wrote nothing)"
