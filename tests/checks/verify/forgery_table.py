"""Forgeries of whole messages, by name: each takes topics as lists and changes one thing in them."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.kafka.clients import Message
from tests.checks.verify.forger import copied, unpacked
from tests.checks.verify.topics_in_memory import Written

Forgery = Callable[[Written], Written]
FORGERIES: dict[str, Forgery] = {}


def forgery(make: Callable[[Written], Written | None]) -> Callable[[Written], Written | None]:
    """Adds it to the table, under its words; it is given a copy, which it may change in place."""

    def made(written: Written) -> Written:
        copy = copied(written)
        return make(copy) or copy

    FORGERIES[make.__name__.replace("_", " ")] = made
    return make


def messages(written: Written, topic: str, partition: int = 0) -> list[Message]:
    return written.partitions[topic][partition].messages


def versions(written: Written) -> list[int]:
    return sorted({unpacked(message.value)["version"] for message in messages(written, "rounds")})


def drop_logs(written: Written, gone: Callable[[int], bool]) -> None:
    partition = written.partitions["rounds"][0]
    partition.messages = [each for each in partition.messages if not gone(unpacked(each.value)["version"])]
