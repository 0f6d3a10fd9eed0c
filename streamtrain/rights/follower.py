"""The role that follows a model and predicts in its own program."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right, reads

HELP = "follows snapshots and predicts in a program of its own: LiveModel, follow_snapshots"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    return [*reads(topics["snapshots"])]
