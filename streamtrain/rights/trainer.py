"""Who trains: reads records, and alone writes what a job publishes."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right, looks, reads, writes
from streamtrain.topics.topic import all_topics

HELP = "trains: `streamtrain train`"


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    own = [topics[key] for key, topic in all_topics().items() if topic.written is not None]
    return [
        *reads(topics["records"], *own),
        *writes(*own),
        *looks(topics["predictions"]),  # a start tells which of the job's topics are wanting
        Right("transactional-id", job, ("Write", "Describe")),
        Right("group", job, ("Read", "Describe")),  # to show its lag
    ]
