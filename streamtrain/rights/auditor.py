"""The role that reads everything and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right, reads

HELP = "looks at all topics: `streamtrain status`, `history`, `verify`, `replay`, `read`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    return [*reads(*topics.values())]
