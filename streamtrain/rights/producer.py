"""The role that writes training records and requests."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right, writes

HELP = "writes training records and requests: RecordWriter, `streamtrain produce`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    return [*writes(topics["records"], topics["requests"])]
