"""The role that answers requests as a stream processor."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right, reads, writes

HELP = "answers requests: `streamtrain predict`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    group = f"{job}.predict"
    return [
        *reads(topics["requests"], topics["snapshots"]),
        *writes(topics["predictions"]),
        Right("group", group, ("Read", "Describe")),
        Right("transactional-id", f"{group}.", ("Write", "Describe"), begins=True),
    ]
