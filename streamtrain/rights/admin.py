"""The role that creates a job's topics."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right

HELP = "makes the topics: `streamtrain topics create`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    return [Right("topic", name, ("Create", "Describe", "DescribeConfigs")) for name in topics.values()]
