"""A caller that takes its time with each message (replay trains between two) is not told that Kafka does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka import reader as reading
from streamtrain.kafka.clients import Message


class Consumer:
    """One message a call, up to `last`; then none."""

    def __init__(self, last: int) -> None:
        self._last = last

    def assign(self, topic: str, offsets: list[tuple[int, int]]) -> None:
        self._next = offsets[0][1] if offsets else self._last + 1   # none: it is at its end

    def consume(self, capacity: int, timeout_s: float) -> list[Message]:
        Clock.now_s += timeout_s
        if self._next > self._last:
            return []
        self._next += 1
        return [Message(0, self._next - 1, 0, None, b"", [], 0, "")]


class Clock:
    now_s = 0.0

    @classmethod
    def monotonic(cls) -> float:
        return cls.now_s


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "time", Clock)


def read(consumer: Any) -> list[int]:
    found = []
    for message in reading.read(consumer, "topic", 0, 0, 5):
        found.append(message.offset)
        Clock.now_s += 3600
    return found


def test_a_slow_caller_gets_them_all() -> None:
    assert read(Consumer(last=4)) == [0, 1, 2, 3, 4]


def test_a_broker_that_falls_silent_is_told() -> None:
    with pytest.raises(KafkaUnreachable, match="up to offset 5"):
        read(Consumer(last=3))
