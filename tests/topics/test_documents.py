"""Each topic of ours is frozen as golden messages and what is shown of them; any other bytes get our own error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import golden_messages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtrain.errors import CheckFailed
from streamtrain.topics import REGISTRY, rounds
from streamtrain.topics.topic import Message, all_topics

OURS = [key for key, topic in all_topics().items() if topic.owned]
MESSAGES = {key: [message for message, _ in golden_messages.read(key)] for key in OURS}


@pytest.mark.parametrize("key", OURS)
def test_golden_messages(key: str) -> None:
    found = golden_messages.read(key)
    assert found
    for message, expected in found:
        shown = golden_messages.shown(key, message)
        assert json.loads(json.dumps(shown)) == shown == expected


@pytest.mark.parametrize("key", OURS)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_bytes_are_shown_or_get_our_error(key: str, data: st.DataObject) -> None:
    """A golden message with other bytes or another header, a part of it, or any bytes."""
    message = data.draw(st.sampled_from(MESSAGES[key]))
    changed = bytearray(message.value or b"\0")
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    part = changed[: data.draw(st.integers(0, len(changed)))]
    headers = dict(message.headers)
    if headers:
        headers[data.draw(st.sampled_from(sorted(headers)))] = data.draw(st.binary() | st.just(b"[" * 100_000))
    name = data.draw(st.none() | st.binary() | st.just(message.key))
    for value in (bytes(changed), bytes(part), data.draw(st.none() | st.binary())):
        given_message = Message(name, value, tuple(headers.items()))
        shown: dict[str, Any] = golden_messages.shown(key, given_message)
        assert shown.get("error") or "error" in shown["document"] or shown["line"]
        if key == "rounds":
            with suppress(CheckFailed):
                rounds.join([rounds.decode(value or b"")])
    assert hasattr(REGISTRY.get(key), "line")
