"""Each topic of ours is frozen as golden messages and what is shown of them; any other bytes get our own error."""

from __future__ import annotations

import json
from typing import Any

import golden_messages
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamtrain.topics import REGISTRY
from streamtrain.topics.topic import Message, all_topics

OURS = [key for key, topic in all_topics().items() if topic.owned]
KEYS = {key: [message.key for message, _ in golden_messages.read(key)] for key in OURS}


@pytest.mark.parametrize("key", OURS)
def test_golden_messages(key: str) -> None:
    found = golden_messages.read(key)
    assert found
    for message, expected in found:
        shown = golden_messages.shown(key, message)
        assert json.loads(json.dumps(shown)) == shown == expected


@pytest.mark.parametrize("key", OURS)
@settings(deadline=None)
@given(data=st.data())
def test_any_bytes_are_shown_or_get_our_error(key: str, data: st.DataObject) -> None:
    name, value = data.draw(st.none() | st.binary() | st.sampled_from(KEYS[key])), data.draw(st.none() | st.binary())
    shown: dict[str, Any] = golden_messages.shown(key, Message(name, value))
    assert shown.get("error") or "error" in shown["document"] or shown["line"]
    assert hasattr(REGISTRY.get(key), "line")
