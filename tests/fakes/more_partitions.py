"""Partitions added to a topic of a test's."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewPartitions
from waiting import wait_for


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """`topic` has `total` partitions when this returns, told by brokers to every new client: the controller answers
    before they know."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_partitions([NewPartitions(topic, total)])[topic].result(60)
    wait_for(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == total)
