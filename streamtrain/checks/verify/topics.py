"""The input of a verification: the messages in a job's topics, and how far each partition goes back.

Nothing here knows where they come from: lists of messages in a test, Kafka by `streamtrain.checks.verify.gathering`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from streamtrain.record_sources.given_files import GivenFiles
from streamtrain.record_sources.source_kind import Topic


@dataclass(frozen=True)
class ReadTopics:
    """The topics of a job; None where there is none of that name.

    As they were at one moment after another, in the order they stand here, so that a prediction has its snapshot, a
    snapshot its dead letters and a dead letter its round log, also while the job runs.
    """

    job: str
    predictions: Topic | None
    snapshots: Topic | None
    dead_letters: Topic | None
    rounds: Topic | None
    control: Topic | None
    requests: Topic | None
    records: Topic | None
    control_end: int  # of control before the snapshots were looked at
    looked_ms: int  # when that was, since 1970
    exactly_once: bool = True  # the predictors' delivery
    files: GivenFiles | None = None  # that were read in the place of `records`


# keys of topics, in the order in which their ends are taken
KEYS = tuple(field.name for field in fields(ReadTopics) if field.type == "Topic | None")
