"""Looks at many jobs, one after the other, with one consumer and one administration client."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence, Set

from streamtrain.job.kafka_settings import KafkaSettings, for_side
from streamtrain.kafka.reading_clients import Reading
from streamtrain.ui.followed_job import Ends, Following

_AGAIN_S = 1.0  # of a turn for jobs whose last look failed, which may wait for an answer that does not come


class Reader(Reading):
    """Looks at the jobs that one user's settings for Kafka reach; one thread at a time, until close()."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        consumer = {**for_side(kafka.common, "C"), **kafka.consumer}
        super().__init__(kafka.bootstrap, consumer, for_side(for_side(kafka.common, "P"), "C"))

    def look(self, jobs: Collection[Following], names: Set[str]) -> None:
        """One look at each, and at some of those whose last one failed; none at those that have a thread of their own.

        `names`: all topics that there are.
        """
        own = [each for each in jobs if not each.rests()]
        sound, failing = [each for each in own if not each.error], [each for each in own if each.error]
        ends = self._ends(sound, names)
        if ends is None:  # each is asked by itself, so that the others go on
            sound, failing = [], [*failing, *sound]
        new = [each for each in sound if self._look(each, ends or {})]
        if new:
            self.look(new, names)
        until_s = time.monotonic() + _AGAIN_S
        for each in sorted(failing, key=lambda each: each.failed_s):
            if time.monotonic() > until_s:
                break
            try:
                each.look(self, self._ends_of([each], names))
            except Exception as error:
                each.failed(error)

    def _look(self, job: Following, ends: Ends) -> bool:
        try:
            return job.look(self, ends)
        except Exception as error:  # of a topic of others' messages nobody knows how it fails
            job.failed(error)
            return False

    def _ends(self, jobs: Sequence[Following], names: Set[str]) -> Ends | None:
        try:
            return self._ends_of(jobs, names)
        except Exception:  # each job then says it of itself
            return None

    def _ends_of(self, jobs: Sequence[Following], names: Set[str]) -> Ends:
        topics = {name for job in jobs for name in job.end_topics} & names
        return self.admin.ends(sorted(topics)) if topics else {}
