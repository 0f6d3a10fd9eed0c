"""Snapshots read from a real topic: from its end, whole or not at all, versions only going up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from publisher import Publisher

from streamtrain.errors import KafkaUnreachable, SnapshotError, UserMistake
from streamtrain.kafka import clients
from streamtrain.kafka.follower import follow
from streamtrain.kafka.snapshots import SnapshotTopic, Stored
from streamtrain.topics.manifest import encode
from streamtrain.topics.topic import Message

MODEL = np.random.default_rng(0).bytes(2_000_000)  # three chunks
TRAINER = np.random.default_rng(1).bytes(1_000_000)  # two


@pytest.fixture
def job(kafka: Any) -> str:
    return str(kafka.fresh_name("snap"))


@pytest.fixture
def publisher(kafka: Any, job: str) -> Publisher:
    return Publisher(kafka.bootstrap, job)


@pytest.fixture
def topic(kafka: Any, job: str) -> Iterator[SnapshotTopic]:
    with SnapshotTopic(job, kafka.bootstrap) as opened:
        yield opened


def drop_chunk(messages: list[Message]) -> list[Message]:
    return [message for message in messages if not (message.key or b"").endswith(b"/c/0001")]


def alter_chunk(messages: list[Message]) -> list[Message]:
    def altered(message: Message) -> Message:
        value = bytes(message.value or b"")
        return message._replace(value=value[:-1] + bytes([value[-1] ^ 1]))

    return [altered(message) if (message.key or b"").endswith(b"/c/0001") else message for message in messages]


def alter_manifest(messages: list[Message]) -> list[Message]:
    return [*messages[:-1], messages[-1]._replace(value=b"\x00\x00\x00\x00\x07" + bytes(messages[-1].value or b""))]


def foreign_key(messages: list[Message]) -> list[Message]:
    return [*messages[:-1], messages[-1]._replace(key=b"s/0099/m")]


DAMAGES = [drop_chunk, alter_chunk, alter_manifest, foreign_key]


def test_no_topic_and_an_empty_topic_hold_no_snapshot(kafka: Any, topic: SnapshotTopic, job: str) -> None:
    assert topic.newest() is None and topic.list() == []
    Publisher(kafka.bootstrap, job)
    assert topic.newest() is None
    with pytest.raises(UserMistake, match="none yet"):
        topic.version(1)


def test_the_newest_is_found_whole(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in range(1, 6):
        made = publisher.put(version, MODEL + bytes([version]), TRAINER)
    stored = topic.newest()
    assert stored is not None
    assert encode(stored.manifest) == encode(made.manifest)
    assert (stored.digest, stored.offset) == (made.digest, publisher.offset)
    assert (stored.model, stored.trainer) == (MODEL + b"\x05", TRAINER)
    assert stored.kept() == publisher.kept
    model_only = topic.newest(trainer=False)
    assert model_only is not None and (model_only.model, model_only.trainer) == (MODEL + b"\x05", None)


def test_a_start_reads_one_model_and_not_the_topic(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in range(1, 8):
        publisher.put(version, MODEL, TRAINER)
    seen: list[int] = []
    client = topic._clients.client
    consume = client.consume

    def counting(capacity: int, timeout_s: float) -> list[clients.Message]:
        found = consume(capacity, timeout_s)
        seen.extend(len(message.value or b"") for message in found)
        return found

    client.consume = counting  # type: ignore[method-assign]
    assert topic.newest() is not None
    assert sum(seen) < 2.5 * len(MODEL + TRAINER), "chunks are read once, plus the first look at the topic's end"


def test_any_version_kept_can_be_read_and_listed(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in range(1, 6):
        publisher.put(version, bytes([version]) * 1000, archived=False)
    assert [located.manifest.version for located in topic.list()] == [3, 4, 5]
    assert topic.version(3).model == b"\x03" * 1000
    with pytest.raises(UserMistake, match=r"holds \(3, 4, 5\), got 2"):
        topic.version(2)


def test_an_empty_model_is_a_snapshot(publisher: Publisher, topic: SnapshotTopic) -> None:
    publisher.put(1, b"", untrained=True)
    stored = topic.newest()
    assert stored is not None and stored.model == b"" and stored.manifest.untrained


def test_an_aborted_transaction_is_invisible(publisher: Publisher, topic: SnapshotTopic) -> None:
    publisher.put(1, b"good")
    for _ in range(30):
        publisher.write(publisher.make(2, MODEL[:1000]).messages, commit=False)
    stored = topic.newest()
    assert stored is not None and stored.model == b"good"


def test_an_open_transaction_is_invisible_until_it_is_committed(publisher: Publisher, topic: SnapshotTopic) -> None:
    publisher.put(1, b"good")
    publisher.begin(publisher.make(2, b"later").messages)
    stored = topic.newest()
    assert stored is not None and stored.model == b"good"
    publisher.commit()
    stored = topic.newest()
    assert stored is not None and stored.model == b"later"


def test_a_zombies_aborted_chunks_between_ours_do_no_harm(
    kafka: Any, publisher: Publisher, topic: SnapshotTopic
) -> None:
    zombie = Publisher(kafka.bootstrap, kafka.fresh_name("zombie"))
    zombie.topic = publisher.topic
    made = publisher.make(1, MODEL).messages
    publisher.begin(made[:1])
    zombie.write([Message(made[1].key, b"x" * 1000)] * 40, commit=False)
    for message in made[1:]:
        publisher._producer.produce(publisher.topic, bytes(message.value or b""), message.key)
    publisher.commit()
    stored = topic.newest()
    assert stored is not None and stored.model == MODEL


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_snapshot_is_an_error(publisher: Publisher, topic: SnapshotTopic, damage: Any) -> None:
    publisher.put(1, MODEL)
    publisher.put_damaged(2, MODEL, damage)
    with pytest.raises(SnapshotError, match=r"chunk s/0002/c/0001 is|expected one msgpack map|under its own key"):
        topic.newest()


def test_an_older_snapshot_written_after_a_newer_one_is_an_error(publisher: Publisher, topic: SnapshotTopic) -> None:
    former = publisher.make(1, b"old")
    publisher.put(2, b"new")
    publisher.write(former.messages)
    with pytest.raises(SnapshotError, match="expected a version above 2"):
        topic.newest()


def test_no_broker_is_said_within_ten_seconds() -> None:
    with SnapshotTopic("job", "127.0.0.1:9") as unreachable, pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:9"):
        unreachable.newest()
    with pytest.raises(UserMistake, match="nonsense"):
        SnapshotTopic("job", "127.0.0.1:9", {"nonsense": 1})


def test_what_is_left_beside_a_damaged_newest_snapshot(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in range(1, 6):
        publisher.put(version, bytes([version]) * 1000)
    publisher.put_damaged(6, MODEL, alter_manifest)  # over version 3, under the same keys
    held = topic.salvage()
    assert held.newest is not None and held.newest.manifest.version == 5
    assert [entry.version for entry in held.kept] == [4, 5]
    assert 6 <= held.version < 20


def test_a_snapshot_with_a_damaged_chunk_is_not_kept(publisher: Publisher, topic: SnapshotTopic) -> None:
    publisher.put(1, MODEL)
    publisher.put_damaged(2, MODEL, alter_chunk)
    held = topic.salvage()
    assert held.newest is not None and held.newest.manifest.version == 2
    assert [entry.version for entry in held.kept] == [1] and held.version >= 2


def test_a_version_goes_on_above_the_highest_there_is(publisher: Publisher, topic: SnapshotTopic) -> None:
    former = publisher.make(1, b"old")
    publisher.put(20, b"new")
    publisher.write(former.messages)
    held = topic.salvage()
    assert held.newest is not None and held.newest.manifest.version == 20 and held.version >= 20
    assert [entry.version for entry in held.kept] == [20]


def test_nothing_is_left_where_every_manifest_is_damaged(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in (1, 2, 3):
        publisher.put_damaged(version, b"x", alter_manifest)
    held = topic.salvage()
    assert held.newest is None and held.kept == () and held.version >= 3


def whole(stored: Stored) -> Stored:
    """As it comes, whatever it holds."""
    return stored


class Following:
    """Follows in a thread and keeps what came."""

    def __init__(self, topic: SnapshotTopic, **settings: Any) -> None:
        self.seen: list[Stored] = []
        self.rejected: list[str] = []
        self._stop = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, args=(topic, settings))
        self._thread.start()

    def _run(self, topic: SnapshotTopic, settings: Any) -> None:
        for stored in follow(topic, whole, lambda: self._stop, reject=self._reject, **settings):
            with self._changed:
                self.seen.append(stored)
                self._changed.notify_all()

    def _reject(self, text: str) -> None:
        with self._changed:
            self.rejected.append(text)
            self._changed.notify_all()

    def wait(self, condition: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), 20), (self.versions, self.rejected)

    @property
    def versions(self) -> list[int]:
        return [stored.manifest.version for stored in self.seen]

    def close(self) -> None:
        self._stop = True
        self._thread.join()


@pytest.fixture
def following(topic: SnapshotTopic) -> Iterator[Any]:
    made: list[Following] = []

    def start(**settings: Any) -> Following:
        made.append(Following(topic, **settings))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_follower_gets_every_new_snapshot(
    publisher: Publisher, topic: SnapshotTopic, following: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, again = topic.load, []
    monkeypatch.setattr(topic, "load", lambda *given: again.append(1) or load(*given))  # type: ignore[func-returns-value]
    publisher.put(1, MODEL, TRAINER)
    follower = following(trainer=True)
    follower.wait(lambda f: f.versions == [1])
    for version in (2, 3, 4):
        publisher.put(version, bytes([version]) + MODEL, TRAINER)
    follower.wait(lambda f: f.versions == [1, 2, 3, 4])
    assert follower.seen[-1].model == b"\x04" + MODEL and follower.seen[-1].trainer == TRAINER
    assert follower.rejected == []
    assert len(again) == 1, "only the first is looked for; the others are put together as they come"


def test_a_follower_waits_for_the_topic(kafka: Any, job: str, following: Any) -> None:
    follower = following()
    Publisher(kafka.bootstrap, job).put(1, b"first")
    follower.wait(lambda f: f.versions == [1])


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_follower_keeps_what_it_has_and_says_so(publisher: Publisher, following: Any, damage: Any) -> None:
    publisher.put(1, MODEL)
    follower = following()
    follower.wait(lambda f: f.versions == [1])
    publisher.put_damaged(2, MODEL, damage)
    follower.wait(lambda f: len(f.rejected) == 1)
    assert "keeping snapshot 1" in follower.rejected[0]
    publisher.put(3, MODEL)
    follower.wait(lambda f: f.versions == [1, 3])


def test_a_follower_that_starts_on_a_damaged_snapshot_waits_for_the_next(publisher: Publisher, following: Any) -> None:
    publisher.put(1, MODEL)
    publisher.put_damaged(2, MODEL, alter_chunk)
    follower = following()
    follower.wait(lambda f: len(f.rejected) == 1)
    publisher.put(3, MODEL)
    follower.wait(lambda f: f.versions == [3])


def test_versions_a_follower_sees_never_go_down(publisher: Publisher, following: Any) -> None:
    former = publisher.make(1, b"old")
    publisher.put(2, b"new")
    follower = following()
    follower.wait(lambda f: f.versions == [2])
    publisher.write(former.messages)
    follower.wait(lambda f: len(f.rejected) == 1)
    assert "expected a version above 2" in follower.rejected[0]
    publisher.put(3, b"newer")
    follower.wait(lambda f: f.versions == [2, 3])


def test_an_aborted_publication_is_not_seen_by_a_follower(publisher: Publisher, following: Any) -> None:
    publisher.put(1, MODEL)
    follower = following()
    follower.wait(lambda f: f.versions == [1])
    made = publisher.make(2, MODEL)
    publisher.write(made.messages, commit=False)
    publisher.write(made.messages)
    follower.wait(lambda f: f.versions == [1, 2])
    assert follower.seen[-1].digest == made.digest and follower.rejected == []


def test_a_follower_of_the_newest_passes_over_outdated_ones(publisher: Publisher, following: Any) -> None:
    publisher.put(1, b"x")
    follower = following(newest_only=True)
    follower.wait(lambda f: f.versions == [1])
    for version in range(2, 60):
        publisher.put(version, MODEL[:10_000])
    follower.wait(lambda f: f.versions[-1] == 59)
    assert follower.versions == sorted(set(follower.versions)) and follower.rejected == []


def test_a_compacted_topic_holds_what_is_kept_and_nothing_else(kafka: Any, job: str, topic: SnapshotTopic) -> None:
    """Keys give way to their successors; what the newest manifest lists can be read across the holes."""
    often = {
        "min.compaction.lag.ms": "0", "max.compaction.lag.ms": "1", "segment.bytes": "1048576",
        "delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0.01",
    }  # fmt: skip
    publisher = Publisher(kafka.bootstrap, job, config=often)
    for version in range(1, 41):
        publisher.put(version, MODEL[:400_000] + bytes([version]), archived=version == 7)
    until = time.monotonic() + 240
    while len(found := list(topic.window(*topic.bounds()))) > 20:
        assert time.monotonic() < until, f"{len(found)} messages are left"
        publisher.put(publisher.kept[-1].version + 1, MODEL[:400_000])  # only segments that are closed are compacted
        time.sleep(0.5)  # the broker's cleaner looks every 15 s
    held = [located.manifest.version for located in topic.list()]
    newest = publisher.kept[-1].version
    assert held == [7, newest - 2, newest - 1, newest]
    assert topic.version(7).model == MODEL[:400_000] + b"\x07"
    for version in held[1:]:
        assert topic.version(version).model.startswith(MODEL[:400_000])
