"""The findings of a replay, snapshot by snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamtrain import exits


@dataclass
class Replayed:
    """One snapshot computed again; `differences` is empty when everything compared is the same, bit for bit."""

    version: int
    rounds: int
    rows: int
    whole: bool  # else the topic no longer holds it: the losses and scores of its round log were compared
    differences: list[str] = field(default_factory=list)


@dataclass
class Report:
    """The snapshots that were computed again, from the snapshot `start` on."""

    job: str
    start: int
    snapshots: list[Replayed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_replayable: str = ""  # why it stopped before the end

    @property
    def differs(self) -> bool:
        return any(found.differences for found in self.snapshots)

    @property
    def ok(self) -> bool:
        return self.exit_code == exits.DONE

    @property
    def exit_code(self) -> int:
        if self.not_replayable and not self.differs:
            return exits.NOT_REPLAYABLE
        return exits.FAILED if self.differs or not self.snapshots else exits.DONE

    def as_dict(self) -> dict[str, Any]:
        rows = [
            {
                "version": found.version,
                "rounds": found.rounds,
                "rows": found.rows,
                "whole": found.whole,
                "differences": found.differences,
            }
            for found in self.snapshots
        ]
        why = {"not_replayable": self.not_replayable} if self.not_replayable else {}
        return {"job": self.job, "from": self.start, "ok": self.ok, **why, "snapshots": rows, "notes": self.notes}

    def lines(self) -> list[str]:
        """For people."""
        lines = []
        for found in self.snapshots:
            lines.append(
                f"{'DIFFERS' if found.differences else 'same   '} snapshot {found.version}: "
                f"{found.rows} rows in {found.rounds} rounds"
                + ("" if found.whole else " (loss and scores; its parameters are compacted away)")
            )
            lines += [f"        {difference}" for difference in found.differences]
        same = self.not_replayable or "every snapshot came out bit for bit"
        result = "A SNAPSHOT DIFFERS" if self.differs else same
        return [*lines, *self.notes, f"{self.job} from snapshot {self.start}: {result}"]
