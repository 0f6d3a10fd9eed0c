"""The status of a job, from its topics alone: newest snapshot, lag, rate, quality over time, dead letters, run.

It joins no group and commits nothing. Each refresh reads what has been added since the last.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from streamtrain.clients.dead_letters import Found, Stray, read_dead_letters
from streamtrain.clients.glance import LOGS, TOPICS, Document, Glance
from streamtrain.closing import Closing
from streamtrain.compute.confusion import MATRIX, by_class
from streamtrain.errors import StreamtrainError
from streamtrain.job import Job
from streamtrain.job.learning import Learning
from streamtrain.kafka.reading_clients import Reading
from streamtrain.topics.dead_letters import Causes
from streamtrain.topics.publication_logs import RoundLogs

_LETTERS = 2_000  # newest dead letters whose reasons are counted
_MAX_CAUSES = 8  # shown apart


class JobStatus(Closing, Glance):
    """Looks at one job again and again, with a consumer and an administration client of its own; one thread at a time.

    A look asks where the topics end, and reads those that have grown. `logs`: how many of the newest publications the
    first look takes.
    """

    def __init__(self, job: Job, logs: int = LOGS) -> None:
        self._job = job
        self._reading = Reading(job.kafka.bootstrap, job.kafka_consumer(), job.kafka_admin())
        super().__init__(job.name, {key: str(job.topic(key).name) for key in TOPICS}, self._reading, logs)
        self.admin = self._reading.admin
        self._learning = Learning(job)
        self._causes = Causes()
        self._letters_at: dict[int, int] = {}
        self._letters: dict[str, int] = {}
        self._strays = 0  # among the letters, what is none of ours

    def close(self) -> None:
        self._reading.close()

    def look(self) -> Document:
        """The status as plain data; what there is nothing to say of yet is None or empty.

        Raises KafkaUnreachable when no broker answers, SnapshotError where the newest manifest is damaged.
        """
        found = self.take(self.admin.ends(list(self.topics.values())))
        self._letters = self._read("dead-letters", self._dead_letters, self._letters, {})
        newest = self.newest
        return {
            **found,
            "behind_open_transaction": self._behind_open_transaction(found["records"], found["ends"]),
            "warning": self._learning.warning,
            "by_class": [] if newest is None else self._by_class(newest.manifest.metrics.get("window") or {}),
            "dead_letters": self._letters,
            "dead_letters_not_ours": self._strays,
        }

    def watch(self, every_s: float) -> Iterator[Document]:
        """Yields `look` again and again; while Kafka is away the last one, with the reason as `error`."""
        document = self.look()
        while True:
            yield document
            time.sleep(every_s)
            try:
                document = self.look()
            except StreamtrainError as error:
                document = {**document, "error": str(error)}

    def _behind_open_transaction(self, records: str, ends: list[int]) -> int:
        """Offsets of records that no read_committed reader sees yet, which the lag leaves out."""
        return sum(self.admin.behind_open_transaction(records, len(ends))) if ends else 0

    def _by_class(self, window: Mapping[str, Any]) -> list[Document]:
        """Returns weight, precision, recall and F1 of each class that the window has rows of. With several heads each
        entry names its head."""
        schema, found = self._job.schema, []
        for label, column in schema.labels:
            head = {"head": label} if schema.head_losses else {}
            matrix = window.get(f"{label}.{MATRIX}" if head else MATRIX) or np.zeros((0, 0))
            classes = zip(schema.labelled.classes(label, column), by_class(matrix), strict=False)
            found += [{**head, "class": name, **figures} for name, figures in classes if any(figures.values())]
        return found

    def _take(self, log: RoundLogs) -> None:
        if self._begins(log):
            self._learning = Learning(self._job, _total_before(log))
        self._learning.add(log.metrics.get("total") or {}, log.slots)
        super()._take(log)

    def _dead_letters(self) -> dict[str, int]:
        """Rows by cause, of the newest letters and those that came since the first look."""
        for found in read_dead_letters(self._job, begin=self._letters_at, newest=_LETTERS, on_stray=self._count_stray):
            self._count(found)
        return self._causes.most_common(_MAX_CAUSES)

    def _count_stray(self, stray: Stray) -> None:
        self._letters_at[stray.partition] = stray.offset + 1
        self._strays += 1

    def _count(self, found: Found) -> None:
        self._letters_at[found.partition] = found.offset + 1
        self._causes.add(found.letter)


def _total_before(log: RoundLogs) -> Document | None:
    """The total figures where the first log that is seen of a lineage starts; None where they are not known."""
    is_first = int((log.metrics.get("total") or {}).get("rows", 0)) <= log.rows_trained
    return {} if is_first else None
