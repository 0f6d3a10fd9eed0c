"""Partitions added to a topic of a test's."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewPartitions
from waiting import wait_for


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """Adds partitions up to `total`, and waits until brokers show them to new clients, which is after the controller's
    answer."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_partitions([NewPartitions(topic, total)])[topic].result(60)
    wait_for(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == total)
