"""Rows to predict in. The user owns this topic; key and headers are echoed with the answer."""

from __future__ import annotations

from streamtrain.topics.topic import Topic

TOPIC = Topic(
    key="requests",
    help="rows to predict in; the answer echoes key and headers",
    config={"cleanup.policy": "delete"},
    partitions=4,
    rows="requests",
)
