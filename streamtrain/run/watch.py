"""Looks at the control topic every two seconds: has a newer run taken the job, and does Kafka answer at all.

Runs in a thread of the coordinator, with a client of its own, so that what hangs elsewhere is noticed here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from streamtrain.errors import KafkaBroken, KafkaUnreachable, StreamtrainError, TooManyOpenFiles
from streamtrain.log import get_logger
from streamtrain.topics.control import Control, RunEntry
from streamtrain.topics.manifest import Run

log = get_logger(__name__)

EVERY_S = 2.0


class Watch:
    """`look` is ControlTopic.look of a topic that nobody else uses. `run` None: of a host of many, whose job any of its
    leaders may have, but no run of one host after them."""

    def __init__(self, run: Run | None, look: Callable[[], Control]) -> None:
        self._run = run
        self._look = look
        self.is_led = False  # by a run of many hosts
        self.replaced_by: RunEntry | None = None
        self.no_more_files: TooManyOpenFiles | None = None
        self.unreachable = False
        self.answered_s = 0.0  # time in which Kafka was seen to answer
        threading.Thread(target=self._repeat, name="watch", daemon=True).start()

    def _repeat(self) -> None:
        while self.replaced_by is None:
            self._look_once()
            time.sleep(EVERY_S)

    def _look_once(self) -> None:
        try:
            holder = self._look().holder
        except StreamtrainError as error:  # what is no entry, too: the next may be one
            passing = isinstance(error, KafkaUnreachable | KafkaBroken)
            (log.debug if passing else log.warning)("control cannot be read", reason=str(error))
            self.unreachable = True
            self.no_more_files = error if isinstance(error, TooManyOpenFiles) else None
            return
        self.unreachable = False
        self.answered_s += EVERY_S
        if holder is None:
            return
        was_led, self.is_led = self.is_led, holder.mode == "many"
        if self._run is None:
            taken = was_led and not self.is_led
        else:
            taken = holder.run != self._run and holder.run.number >= self._run.number
        if taken:
            self.replaced_by = holder
