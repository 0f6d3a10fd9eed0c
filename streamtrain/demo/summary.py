"""The results of the demo, and what to try next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from streamtrain.checks.verify.report import Report
from streamtrain.demo.folder import Folder
from streamtrain.demo.standing import Standing

VERSIONS_BACK = 3  # of the replay it proposes


@dataclass(frozen=True)
class Next:
    """A command to paste, and what it does."""

    command: str
    text: str


@dataclass(frozen=True)
class Summary:
    """`report` is verify's. `first_trained_s`: from the demo's start to the first snapshot that had learned rows."""

    job: str
    standing: Standing
    report: Report
    seconds: float
    verify_seconds: float
    first_trained_s: float | None
    folder: Folder
    next_commands: list[Next]

    @property
    def missing_answers(self) -> int:
        return self.standing.asked - self.standing.answered

    @property
    def rows_accounted(self) -> int:
        """Rows trained, dead lettered and filtered: of an undisturbed stream as many as were sent."""
        return self.report.rows_trained + self.report.rows_dead + self.report.rows_filtered

    @property
    def ok(self) -> bool:
        """Every check passed, every row accounted for, every request answered."""
        return self.report.ok and self.rows_accounted == self.standing.sent and self.missing_answers == 0

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        standing = self.standing
        return {
            "job": self.job,
            "ok": self.ok,
            "seconds": round(self.seconds, 2),
            "first_trained_s": self.first_trained_s,
            "rows": {
                "produced": standing.sent,
                "trained": self.report.rows_trained,
                "filtered": self.report.rows_filtered,
                "dead_lettered": self.report.rows_dead,
            },
            "dead_letters": standing.dead,
            "quality": standing.scores,
            "snapshots": standing.version,
            "predictions": {
                "requests": standing.asked,
                "answers": standing.answered,
                "errors": standing.errors,
                "delay_p50_s": standing.delay_p50_s,
                "delay_p99_s": standing.delay_p99_s,
            },
            "verify": self.report.as_dict(),
            "verify_seconds": round(self.verify_seconds, 2),
            "folder": str(self.folder.path),
            "job_file": str(self.folder.job_file),
            "next": [{"command": following.command, "text": following.text} for following in self.next_commands],
        }


def next_commands(program: str, folder: Folder, version: int, own_kafka: bool) -> list[Next]:
    """Three commands that work as pasted, in this order. `version` is the newest snapshot's."""
    job_file = shlex.quote(str(folder.job_file))
    damaged = Next(f"{program} read {job_file} dead-letters --until-end", "the damaged flights, each with its reason")
    again = Next(
        f"{program} replay {job_file} --from {max(1, version - VERSIONS_BACK)}",
        "compute the last snapshots again from the records: the same bits",
    )
    if not own_kafka:
        return [Next(f"{program} status {job_file}", "the job as its topics tell it"), damaged, again]
    start = f"{program} broker start --data {shlex.quote(str(folder.kafka))}"
    return [Next(start, "Kafka again, with all of this in it"), damaged, again]
