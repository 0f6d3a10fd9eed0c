"""Training rows in. The user owns this topic and its format; we only read it."""

from __future__ import annotations

from streamtrain.topics.topic import Topic

HELP = "training rows in; one record holds one row or many"
TOPIC = Topic(
    key="records",
    config={"cleanup.policy": "delete"},
    partitions=4,
    rows="training",
)
