"""The history of a fit, publication by publication: as rows, as a frame, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamtrain.clients.published import Published
from streamtrain.compute import metrics, schedules
from streamtrain.errors import UserMistake


@dataclass(frozen=True)
class Step:
    """One publication: what was trained since the one before it, and how far training is.

    epoch: passes over the rows that are done; seconds: since training began.
    """

    published: Published
    round: int
    epoch: int
    rows: int
    seconds: float
    ends_epoch: bool  # its last round is the last of a pass

    def row(self) -> dict[str, Any]:
        """Returns a row of the frame. Loss is the mean over the rows trained since the row before.

        Each of them was scored before it was learned. The figures behind it are the newest window's numbers, the
        constant prediction's beside the model's."""
        published = self.published
        steps = int(published.metrics["updates"])
        figures = metrics.numbers(published.metrics["window"])
        window = {name: value for name, value in figures.items() if not metrics.is_amount(name)}
        rate = schedules.rates(published.learning_rate)(steps, published.metrics.get("rate_left", 1.0))
        return {
            "version": published.version, "round": self.round, "epoch": self.epoch, "rows": self.rows, "steps": steps,
            "seconds": self.seconds, "loss": published.loss, "learning_rate": rate, **window,
        }  # fmt: skip


class History(Sequence[Any]):
    """The publications of a fit in order. It never changes."""

    along = "rows"  # the column that pictures go by

    def __init__(self, steps: Sequence[Any] = ()) -> None:
        self._steps = tuple(steps)

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, at: Any) -> Any:
        return self._steps[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def after(self, step: Step) -> History:
        """With one more."""
        return History((*self._steps, step))

    def rows(self) -> list[Mapping[str, Any]]:
        """Returns the row that `frame` has of each publication."""
        return [step.row() for step in self._steps]

    def frame(self) -> Any:
        """A pandas frame with a row for each publication: version, round, epoch, rows, steps, seconds, loss,
        learning_rate, then the window's figures by their names."""
        import pandas

        return pandas.DataFrame(self.rows())

    def plot(self, *figures: str) -> Any:
        """A matplotlib figure (extra `plot`) with one axis below the other for each of the frame's columns that is
        named, over the rows trained, the constant prediction's beside it; without a name the loss.

        UserMistake for what is no column.
        """
        from matplotlib.figure import Figure

        rows = self.rows()
        known = dict.fromkeys(name for row in rows for name in row)
        wrong = next((name for name in figures if name not in known), None)
        if wrong is not None:
            raise UserMistake(f"history.plot: expected one of {', '.join(known)}, got {wrong!r}")
        chosen = figures or ("loss",)
        figure = Figure(figsize=(7, 3 * len(chosen)), layout="constrained")
        for axis, name in zip(figure.subplots(len(chosen), sharex=True, squeeze=False)[:, 0], chosen, strict=True):
            for series in (name, metrics.constant_of(name)):
                if series in known:
                    axis.plot([row[self.along] for row in rows], [row.get(series) for row in rows], label=series)
            axis.legend()
        axis.set_xlabel(self.along)
        return figure
