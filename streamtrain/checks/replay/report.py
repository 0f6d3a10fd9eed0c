"""What a replay found, snapshot by snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
    """What was computed again: from the snapshot `start` on."""

    job: str
    start: int
    snapshots: list[Replayed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return bool(self.snapshots) and not any(found.differences for found in self.snapshots)

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
        return {"job": self.job, "from": self.start, "ok": self.ok, "snapshots": rows, "notes": self.notes}

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
        result = "every snapshot came out bit for bit" if self.ok else "A SNAPSHOT DIFFERS"
        return [*lines, *self.notes, f"{self.job} from snapshot {self.start}: {result}"]
