"""The settings of librdkafka that a client is made with; native/kafka/settings.cpp has the one table of ours."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain import _native
from streamtrain._native import KafkaPurpose as Purpose

__all__ = ["Purpose", "client_settings", "flat_settings"]


def flat_settings(kafka: Mapping[str, object]) -> dict[str, str]:
    """librdkafka properties from a mapping: nested tables joined by dots, booleans as true and false."""
    flat: dict[str, str] = {}
    for name, value in kafka.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{inner}": text for inner, text in flat_settings(value).items()})
        else:
            flat[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def client_settings(
    purpose: Purpose, kafka: Mapping[str, object], own: Mapping[str, str] | None = None, clients: int = 1
) -> dict[str, str]:
    """Returns the settings of a client for `purpose`: the user's from `kafka`, with ours.

    `own` are this client's alone. Each of the `clients` clients gets its share of the memory for messages.
    """
    given = list(flat_settings(kafka).items())
    return dict(_native.kafka_client_settings(purpose, given, list((own or {}).items()), clients))
