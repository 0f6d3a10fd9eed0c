"""Topics of a test changed while they are used; each call waits until brokers show the change, which is after the
controller's answer."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from waiting import wait_for


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """Adds partitions up to `total`."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_partitions([NewPartitions(topic, total)])[topic].result(60)
    wait_for(lambda: len(client.list_topics(topic, 10).topics[topic].partitions) == total)


def set_config(bootstrap: str, topic: str, settings: Mapping[str, str]) -> None:
    """Sets these settings of the topic."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    operation = AlterConfigOpType.SET
    entries = [ConfigEntry(*setting, incremental_operation=operation) for setting in settings.items()]
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client.incremental_alter_configs([changed])[changed].result(60)

    def is_applied() -> bool:
        described = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        (found,) = [each.result(60) for each in described.values()]
        return all(found[name].value == value for name, value in settings.items())

    wait_for(is_applied)
