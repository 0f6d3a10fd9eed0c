"""The role that trains: it reads records, and only it writes what a job publishes."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.rights.right import Right, looks, reads, writes
from streamtrain.topics.control import transactional_id
from streamtrain.topics.topic import all_topics

HELP = "trains: `streamtrain train`"
HELD_OUT = "held_out"  # the topic of rows that a job's model is judged by, where it has one


def rights(job: str, topics: Mapping[str, str]) -> list[Right]:
    own = [topics[key] for key, topic in all_topics().items() if topic.written is not None]
    held_out = [topics[HELD_OUT]] if HELD_OUT in topics else []
    return [
        *reads(topics["records"], *own, *held_out),
        *writes(*own),
        *looks(topics["predictions"]),  # a start tells which of the job's topics are wanting
        Right("transactional-id", transactional_id(job), ("Write", "Describe")),
        Right("group", job, ("Read", "Describe")),  # to show its lag
    ]
