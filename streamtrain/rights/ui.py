"""The page over a job's topics."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights import auditor
from streamtrain.rights.right import Right

HELP = "shows the job in a browser: `streamtrain ui`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    return auditor.rights(job, topics)
