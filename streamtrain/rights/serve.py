"""The server of predictions over HTTP: a follower."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights import follower
from streamtrain.rights.right import Right

HELP = "answers rows over HTTP with the newest snapshot: `streamtrain serve`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    return follower.rights(job, topics)
