"""The findings of a verification: one entry per check, with the span it could check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from streamtrain import exits


@dataclass
class Check:
    """`problems` empty: it holds over `span`; `not_checkable` says what could not be looked at, and why."""

    name: str
    promise: str
    span: str = ""
    problems: list[str] = field(default_factory=list)
    not_checkable: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "promise": self.promise,
            "ok": self.ok,
            "span": self.span,
            "problems": self.problems[:50],
            "not_checkable": self.not_checkable[:50],
        }


@dataclass
class Report:
    job: str
    checks: list[Check] = field(default_factory=list)
    rows_trained: int = 0
    rows_dead: int = 0
    rows_filtered: int = 0
    versions: tuple[int, int] | None = None

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def exit_code(self) -> int:
        return exits.DONE if self.ok else exits.FAILED

    def as_dict(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "ok": self.ok,
            "versions": self.versions,
            "rows": {"trained": self.rows_trained, "dead_lettered": self.rows_dead, "filtered": self.rows_filtered},
            "checks": [check.as_dict() for check in self.checks],
        }

    def lines(self) -> list[str]:
        """For people."""
        lines = []
        for check in self.checks:
            lines.append(f"{'ok    ' if check.ok else 'FAILED'} {check.name}: {check.promise} ({check.span})")
            lines += [f"       {problem}" for problem in check.problems[:10]]
            if len(check.problems) > 10:
                lines.append(f"       and {len(check.problems) - 10} more")
            lines += [f"       not checkable: {reason}" for reason in check.not_checkable[:5]]
        span = "" if self.versions is None else f", versions {self.versions[0]} to {self.versions[1]}"
        counts = (
            f"{self.rows_trained} rows trained, {self.rows_dead} dead lettered, {self.rows_filtered} filtered{span}"
        )
        lines.append(f"{self.job}: {'every check passed' if self.ok else 'A CHECK FAILED'}; {counts}")
        return lines
