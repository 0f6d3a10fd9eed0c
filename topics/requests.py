"""Rows to predict in. The user owns this topic; key and headers are echoed with the answer."""

from __future__ import annotations

from streamtrain.topics.topic import Topic

HELP = "rows to predict in; the answer echoes key and headers"
TOPIC = Topic(
    key="requests",
    config={"cleanup.policy": "delete"},
    partitions=4,
    rows="requests",
)
