"""Callbacks, which see a `fit` while it runs and can end it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamtrain.compute import snapshot as payload
from streamtrain.compute.metrics import is_of_one_window
from streamtrain.compute.spec import Array
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import UserMistake
from streamtrain.fitting.fit_history import History
from streamtrain.fitting.fitted import Fitted, fitted_of
from streamtrain.job import Job
from streamtrain.topics.chunks import Stored

MOMENTS = ("on_begin", "on_round", "on_epoch", "on_end")


@dataclass(frozen=True)
class Moment:
    """Training as a round has left it, which is published: its number, the passes over the rows that are done, the rows
    trained and the seconds since it began. `history` ends with it; `metrics` are its manifest's.

    A callback is a function of one, called at the end of rounds, or an object with any of on_begin(job),
    on_round(moment), on_epoch(moment) at the end of a pass, on_end(fitted).
    """

    round: int
    epoch: int
    ends_epoch: bool  # the round is the last of its pass
    rows: int
    seconds: float
    history: History
    _stored: Stored = field(repr=False)
    _network: TorchModule | None = field(repr=False)
    _reasons: list[str] = field(repr=False)

    @property
    def version(self) -> int:
        return self._stored.manifest.version

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self._stored.manifest.metrics

    def model(self) -> Fitted:
        """The model as it is now; what training does later does not change it."""
        return fitted_of(Fitted, self._stored, self._network, self.history)

    def scores(self) -> dict[str, Array]:
        """The score blocks: sums over every row that was scored before it was learned (compute/metrics.py)."""
        assert self._stored.trainer is not None
        arrays = payload.decode(self._stored.trainer)
        return {name: arrays[name] for name in arrays if name.startswith("score.") and not is_of_one_window(name)}

    def stop(self, why: str) -> None:
        """Training ends with this round; what was read beyond it is left."""
        self._reasons.append(why)


class Callbacks:
    """The callbacks of one fit. Each is called in the order given, from another thread; what one raises ends the fit.

    Raises UserMistake for an object that is no callback.
    """

    def __init__(self, given: Iterable[Any]) -> None:
        self._given = list(given) if isinstance(given, Iterable) else [given]
        for each in self._given:
            if not callable(each) and not any(hasattr(each, name) for name in MOMENTS):
                raise UserMistake(
                    f"callbacks: expected functions of a moment, or objects with {', '.join(MOMENTS)}, "
                    f"got {type(each).__name__}"
                )

    def __bool__(self) -> bool:
        return bool(self._given)

    def hear(self, name: str) -> bool:
        """Returns whether any callback takes the event `name`."""
        return any(self._of(each, name) for each in self._given)

    def tell(self, name: str, what: Job | Moment | Fitted) -> None:
        for each in self._given:
            call = self._of(each, name)
            if call is not None:
                call(what)

    def _of(self, each: Any, name: str) -> Callable[[Any], object] | None:
        own = any(hasattr(each, moment) for moment in MOMENTS)
        found = getattr(each, name, None) if own else each if name == "on_round" else None
        return found if callable(found) else None
