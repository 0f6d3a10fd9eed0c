"""The middle of the demo: flights stream in while a trainer learns them and a predictor answers, until all is done."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from streamtrain.demo.answers import Answers
from streamtrain.demo.child import Child
from streamtrain.demo.flights import Flights
from streamtrain.demo.folder import Folder
from streamtrain.demo.standing import Standing
from streamtrain.demo.stream import Pace, Stream
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin

LOOK_S = 0.1  # between two looks at everything
ANSWERS_S = 30.0  # for the last answers
DRAIN_S = 60.0  # for the last round, its publication and the end of the processes


class Streaming:
    """`settings` are flags for the children, beside the job file; `metrics` ports, by command, where they serve theirs.
    Use from the main thread, once."""

    def __init__(
        self,
        job: Job,
        flights: Flights,
        rate: float,
        folder: Folder,
        settings: Sequence[str],
        environment: Mapping[str, str],
        metrics: Mapping[str, int] | None = None,
    ) -> None:
        self._job = job
        self._folder = folder
        self._arguments = [str(folder.job_file), *settings]
        self._environment, self._metrics = environment, metrics or {}
        self._stream = Stream(job, flights, Pace(rate))
        self._answers = Answers(job, flights)
        self._standing = Standing(rows=len(flights))
        self._ends: list[int] | None = None  # of the records, once all are there
        self._trained_s: float | None = None  # when the newest snapshot had seen them all
        self._asked = 0

    @property
    def stopped(self) -> bool:
        """Returns whether Ctrl-C or SIGTERM ended it before it was done."""
        return self._asked > 0

    def run(self, show: Callable[[Standing], None], check: Callable[[], None]) -> Standing:
        """Ends when every flight is in a snapshot and every request answered, or when it is stopped.

        `check` is called now and then and may raise what makes it useless to go on.
        A first Ctrl-C or SIGTERM lets the open round be published, a second ends all at once.
        """
        with self._signals(), self._child("train") as train, self._child("predict") as predict:
            self._stream.start()
            self._answers.start()
            try:
                while not self.stopped and not self._is_done():
                    self._look(train, show)
                    check()
                    for part in (train, predict, self._stream, self._answers):
                        part.check()
                    time.sleep(LOOK_S)
                self._drain((train, predict), show)
            finally:
                self._stream.stop()
                self._answers.stop()
                self._answers.join(DRAIN_S)
        return self._standing

    def _child(self, command: str) -> Child:
        served = ["--metrics-port", str(self._metrics[command])] if command in self._metrics else []
        return Child([command, *self._arguments, *served], self._folder.log(command), self._environment)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM are counted in here."""

        def count(number: int, frame: object) -> None:
            self._asked += 1

        before = {number: signal.signal(number, count) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _look(self, train: Child, show: Callable[[Standing], None]) -> None:
        for event in train.taken():
            self._standing.take(event)
        self._standing.look(self._stream, self._answers)
        show(self._standing)

    def _is_done(self) -> bool:
        if self._ends is None and self._stream.ended.is_set():
            self._stream.check()
            self._ends = self._record_ends()
        if self._ends is None or [offset for offset, _ in self._standing.positions] != self._ends:
            return False
        if self._trained_s is None:
            self._trained_s, self._standing.streamed_s = time.monotonic(), self._standing.seconds
        return self._standing.answered >= self._standing.asked or time.monotonic() > self._trained_s + ANSWERS_S

    def _record_ends(self) -> list[int]:
        records = str(self._job.topic("records").name)
        admin = Admin(self._job.kafka.bootstrap, self._job.kafka_admin())
        return [end for _, end in admin.spans(records) or ()]

    def _drain(self, children: tuple[Child, Child], show: Callable[[Standing], None]) -> None:
        """Ends the children, who finish what they have begun; a second signal kills them."""
        self._stream.stop()
        until_s = time.monotonic() + DRAIN_S
        for child in children:
            child.drain()
        while not all(child.ended() for child in children) and self._asked < 2 and time.monotonic() < until_s:
            self._look(children[0], show)
            time.sleep(LOOK_S)
        for child in children:
            if child.wait(0) != 0 and not self.stopped:
                child.check()
        self._look(children[0], show)
