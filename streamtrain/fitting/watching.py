"""Observation of a run of `fit`: its history, and callbacks at the points where training waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable

from streamtrain.clients.published import Published, published_of
from streamtrain.columns.rejected import RejectedRows
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import UserMistake
from streamtrain.fitting.callbacks import Callbacks, Moment
from streamtrain.fitting.fit_history import History, Step
from streamtrain.fitting.fitted import Fitted, fitted_of
from streamtrain.fitting.pace import Pace
from streamtrain.job import Job
from streamtrain.run.publication import Assembled
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import Run


class Stopped(Exception):
    """A callback has ended training; says why."""


class Watching:
    """The observer of one run. With a pace it calls the callbacks where the pace says, else after each publication.

    What they raise comes out of heed(), and Stopped. Raises UserMistake for a pace that the callbacks do not go with.
    """

    def __init__(
        self, callbacks: Callbacks, network: TorchModule | None, rounds: int | None, epochs: int | None
    ) -> None:
        self._callbacks, self._network = callbacks, network
        if callbacks.hear("on_epoch"):
            if rounds is not None:
                raise UserMistake("fit: every_rounds: expected none beside a callback with on_epoch, got one")
            epochs = epochs or 1
        self.pace = Pace(rounds, epochs) if rounds or epochs else None
        self.history = History()
        self._before: tuple[Run, Published] | None = None
        self._unseen: Step | None = None
        self._began_s = time.monotonic()

    def begin(self, job: Job) -> None:
        """Nothing runs yet."""
        self._callbacks.tell("on_begin", job)

    def end(self, stored: Stored, stopped: str, rejected: RejectedRows) -> Fitted:
        """Nothing runs any more: what is left."""
        fitted = fitted_of(Fitted, stored, self._network, self.history, stopped=stopped, rejected=rejected)
        self._callbacks.tell("on_end", fitted)
        return fitted

    def note(self, assembled: Assembled, pass_records: int) -> None:
        """A publication is taken over as the newest; `pass_records`: of one pass over the rows, 0 if not known yet."""
        manifest = assembled.snapshot.manifest
        published = published_of(assembled.logs, self._before)
        self._before = manifest.run, published
        at = assembled.positions[0]
        step = Step(
            published,
            manifest.round,
            at.offset // pass_records if pass_records else 0,
            manifest.rows_seen,
            time.monotonic() - self._began_s,
            bool(pass_records) and not (at.row or at.offset % pass_records),
        )
        self.history = self.history.after(step)
        self._unseen = step

    def heed(self, stored: Callable[[], Stored]) -> None:
        """Tells the newest publication, which stored() gives, where it is not told and its turn has come."""
        step, pace = self._unseen, self.pace
        if step is None or not (pace is None or 0 <= pace.awaited <= step.round):
            return
        self._unseen = None
        self._tell(step, stored)
        if pace is not None:
            pace.looked(step.round)

    def _tell(self, step: Step, stored: Callable[[], Stored]) -> None:
        if not self._callbacks:
            return
        reasons: list[str] = []
        moment = Moment(
            step.round, step.epoch, step.ends_epoch, step.rows, step.seconds, self.history, stored(), self._network,
            reasons,
        )  # fmt: skip
        self._callbacks.tell("on_round", moment)
        if step.ends_epoch:
            self._callbacks.tell("on_epoch", moment)
        if reasons:
            raise Stopped("; ".join(reasons))
