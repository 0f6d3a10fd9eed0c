"""Snapshots read from a real topic: from its end, whole or not at all, versions only going up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaError
from publisher import Publisher

from streamtrain import _native
from streamtrain._native import KafkaCode
from streamtrain.background import in_background
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.kafka.clients import Message as Read
from streamtrain.kafka.follower import follow
from streamtrain.kafka.snapshot_reader import SnapshotTopic, Stored
from streamtrain.topics.manifest import encode
from streamtrain.topics.topic import Message
from tests.kafka.conftest import Following, failing

MODEL = np.random.default_rng(0).bytes(2_000_000)  # three chunks
TRAINER = np.random.default_rng(1).bytes(1_000_000)  # two


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


def newest(topic: SnapshotTopic) -> Stored:
    stored = topic.newest()
    assert stored is not None
    return stored


def test_no_topic_and_an_empty_topic_hold_no_snapshot(kafka: Any, topic: SnapshotTopic, job: str) -> None:
    assert topic.newest() is None and topic.list() == []
    Publisher(kafka.bootstrap, job)
    assert topic.newest() is None
    with pytest.raises(UserMistake, match="none yet"):
        topic.version(1)


def test_the_newest_is_found_whole(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in range(1, 6):
        publication = publisher.put(version, MODEL + bytes([version]), TRAINER)
    stored = newest(topic)
    assert encode(stored.manifest) == encode(publication.manifest)
    assert (stored.digest, stored.offset) == (publication.digest, publisher.offset)
    assert (stored.model, stored.trainer) == (MODEL + b"\x05", TRAINER)
    assert stored.kept() == publisher.kept
    model_only = topic.newest(trainer=False)
    assert model_only is not None and (model_only.model, model_only.trainer) == (MODEL + b"\x05", None)
    publisher.put(6, b"", untrained=True)
    stored = newest(topic)
    assert stored.model == b"" and stored.manifest.untrained


def test_a_start_reads_one_model_and_not_the_topic(
    publisher: Publisher, topic: SnapshotTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in range(1, 8):
        publisher.put(version, MODEL, TRAINER)
    seen: list[int] = []
    consume = topic._clients.client.consume

    def counting(capacity: int, timeout_s: float) -> list[Read]:
        found = consume(capacity, timeout_s)
        seen.extend(len(message.value or b"") for message in found)
        return found

    monkeypatch.setattr(topic._clients.client, "consume", counting)
    assert topic.newest() is not None
    assert sum(seen) < 2.5 * len(MODEL + TRAINER), "chunks are read once, plus the first look at the topic's end"


def test_any_version_kept_can_be_read_and_listed(publisher: Publisher, topic: SnapshotTopic) -> None:
    for version in range(1, 6):
        publisher.put(version, bytes([version]) * 1000, archived=False)
    assert [located.manifest.version for located in topic.list()] == [3, 4, 5]
    assert topic.version(3).model == b"\x03" * 1000
    with pytest.raises(UserMistake, match=r"holds \(3, 4, 5\), got 2"):
        topic.version(2)


def test_only_what_is_committed_is_seen(publisher: Publisher, topic: SnapshotTopic) -> None:
    publisher.put(1, b"good")
    for _ in range(30):
        publisher.write(publisher.make(2, MODEL[:1000]).messages, commit=False)
    assert newest(topic).model == b"good"
    publisher.begin(publisher.make(2, b"later").messages)
    assert newest(topic).model == b"good"
    publisher.commit()
    assert newest(topic).model == b"later"


def test_a_zombies_aborted_chunks_between_ours_do_no_harm(
    kafka: Any, publisher: Publisher, topic: SnapshotTopic
) -> None:
    zombie = Publisher(kafka.bootstrap, kafka.fresh_name("zombie"))
    zombie.topic = publisher.topic
    messages = publisher.make(1, MODEL).messages
    publisher.begin(messages[:1])
    zombie.write([Message(messages[1].key, b"x" * 1000)] * 40, commit=False)
    for message in messages[1:]:
        publisher._producer.produce(publisher.topic, bytes(message.value or b""), message.key)
    publisher.commit()
    assert newest(topic).model == MODEL


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


@pytest.mark.parametrize(
    ("good", "damaged", "damage", "newest", "kept"),
    [
        ([1, 2, 3, 4, 5], [6], alter_manifest, 5, [4, 5]),  # over version 3, under the same keys
        ([1], [2], alter_chunk, 2, [1]),
        ([], [1, 2, 3], alter_manifest, None, []),
    ],
    ids=["a manifest", "a chunk", "every manifest"],
)
def test_what_is_left_beside_damaged_snapshots(
    publisher: Publisher,
    topic: SnapshotTopic,
    good: list[int],
    damaged: list[int],
    damage: Any,
    newest: int | None,
    kept: list[int],
) -> None:
    for version in good:
        publisher.put(version, bytes([version]) * 1000)
    for version in damaged:
        publisher.put_damaged(version, MODEL, damage)
    left = topic.salvage()
    assert (left.newest.manifest.version if left.newest else None) == newest
    assert [entry.version for entry in left.kept] == kept and damaged[-1] <= left.version < 20


def test_a_version_goes_on_above_the_highest_there_is(publisher: Publisher, topic: SnapshotTopic) -> None:
    former = publisher.make(1, b"old")
    publisher.put(20, b"new")
    publisher.write(former.messages)
    left = topic.salvage()
    assert left.newest is not None and left.newest.manifest.version == 20 and left.version >= 20
    assert [entry.version for entry in left.kept] == [20]


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART,
    ],
)  # fmt: skip
def test_a_broker_that_takes_up_its_partitions_is_waited_for(
    topic: SnapshotTopic, publisher: Publisher, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.put(1, MODEL)
    client = topic._clients.client
    refusals = failing(monkeypatch, client, "bounds", *3 * [client.explain(_native.KafkaFailure(code, "it says"))])
    assert newest(topic).manifest.version == 1 and not refusals


def test_an_end_before_the_end_is_no_end(
    topic: SnapshotTopic, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just come back may say that the topic ends where it did a while ago."""
    publisher.put(1, MODEL)
    low, end = topic.bounds()
    consume, early = topic._clients.client.consume, [[Read(0, low, -1, None, None, [], KafkaCode.PARTITION_EOF, "")]]
    monkeypatch.setattr(topic._clients.client, "consume", lambda *given: early.pop() if early else consume(*given))
    assert [message.key for message in topic.window(low, end)] != [] and not early


def test_a_follower_gets_every_new_snapshot(
    publisher: Publisher, topic: SnapshotTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, again = topic.load, []
    monkeypatch.setattr(topic, "load", lambda *given: again.append(1) or load(*given))  # type: ignore[func-returns-value]
    publisher.put(1, MODEL, TRAINER)
    following = Following(topic, trainer=True)
    aborted = publisher.make(2, MODEL)
    publisher.write(aborted.messages, commit=False)
    for version in (2, 3, 4):
        newest_one = publisher.put(version, bytes([version]) + MODEL, TRAINER)
    following.until(lambda: following.versions == [1, 2, 3, 4])
    last = following.seen[-1]
    assert (last.model, last.trainer, last.digest) == (b"\x04" + MODEL, TRAINER, newest_one.digest)
    assert following.rejected == []
    assert len(again) == 1, "only the first is looked for; the others are put together as they come"


def test_a_follower_waits_for_the_topic(kafka: Any, job: str, topic: SnapshotTopic) -> None:
    first = in_background(lambda: next(follow(topic, lambda stored: stored)), name="follower")
    Publisher(kafka.bootstrap, job).put(1, b"first")
    assert first.result(60).manifest.version == 1


REFUSED: dict[str, tuple[Callable[[list[Message]], list[Message]], int, str]] = {
    **{damage.__name__: (damage, 3, "keeping snapshot 2") for damage in DAMAGES},
    "older": (list, 1, "expected a version above 2, got 1"),
    "equal": (list, 2, "expected a version above 2, got 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_versions_a_follower_sees_never_go_down(publisher: Publisher, topic: SnapshotTopic, name: str) -> None:
    """It keeps what it has, says why, and takes the next one."""
    change, version, reason = REFUSED[name]
    refused = publisher.make(version, MODEL)
    publisher.put(2, MODEL)
    following = Following(topic)
    publisher.write(change(list(refused.messages)))
    following.until(lambda: len(following.rejected) == 1)
    assert reason in following.rejected[0]
    publisher.put(4, MODEL)
    following.until(lambda: following.versions == [2, 4])
    assert len(following.rejected) == 1


def test_a_follower_that_starts_on_a_damaged_snapshot_waits_for_the_next(
    publisher: Publisher, topic: SnapshotTopic
) -> None:
    publisher.put(1, MODEL)
    publisher.put_damaged(2, MODEL, alter_chunk)
    following = Following(topic)
    assert following.seen == [] and len(following.rejected) == 1
    publisher.put(3, MODEL)
    following.until(lambda: following.versions == [3])


def test_a_follower_of_the_newest_passes_over_outdated_ones(publisher: Publisher, topic: SnapshotTopic) -> None:
    publisher.put(1, b"x")
    following = Following(topic, newest_only=True)
    for version in range(2, 60):
        publisher.put(version, MODEL[:10_000])
    following.until(lambda: following.versions[-1] == 59)
    assert following.versions == sorted(set(following.versions)) and following.rejected == []


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
    versions = [located.manifest.version for located in topic.list()]
    newest = publisher.kept[-1].version
    assert versions == [7, newest - 2, newest - 1, newest]
    assert topic.version(7).model == MODEL[:400_000] + b"\x07"
    for version in versions[1:]:
        assert topic.version(version).model.startswith(MODEL[:400_000])
