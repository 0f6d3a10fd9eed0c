"""Kafka's classes are kept for the next start, which works without them too."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streamtrain.broker import Broker, start_broker
from streamtrain.broker.archive import KEPT
from streamtrain.broker.distribution import ARCHIVES, JAR_LIST, Distribution, find_distribution, jar_path

pytestmark = pytest.mark.kafka


@pytest.fixture
def kafka_folder(tmp_path, monkeypatch) -> Path:
    """Of a Maven repository that holds Kafka's jars and no archive: the folder of Kafka's own jar."""
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
        for broker in list(pool.map(lambda name: start_broker(tmp_path / name, fast_start=True), "ab")):
            assert not uses(broker, archive)
            assert not list(broker.data.glob("node1/tmp/classes"))
            broker.kill()
    assert caplog.text.count("keeping Kafka's classes") == 1
    files = {path for path in kafka_folder.iterdir() if path.suffix != ".jar"}
    assert files == {archive, *others[1:], kafka_folder / ".streamtrain-lock"}
    with start_broker(tmp_path / "c", fast_start=True) as broker:
        assert uses(broker, archive)
    # a wrong byte in the middle, as of a disk that fails
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 0xFF
    archive.unlink()
    archive.write_bytes(content)
    with start_broker(tmp_path / "d", fast_start=True) as broker:
        assert not uses(broker, archive)


@pytest.mark.full
def test_a_start_that_cannot_keep_the_classes_is_a_start(kafka_folder, tmp_path):
    (kafka_folder / ".streamtrain-lock").mkdir()
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
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
