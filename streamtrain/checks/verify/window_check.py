"""Checks windows of scored rows: each has its figures and closes with the first round that brings enough rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain.checks.verify.verify_report import Check
from streamtrain.compute.windows import most_windows, window_rows
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog


@dataclass
class _Open:
    """The open window after a log. None: unknown."""

    lineage: str
    version: int
    total: int | None = None  # rows scored so far
    scored: int | None = None  # of them those of the window
    trained: int | None = None  # rows since it was opened
    least: int = 0  # rows from which on it closes
    full: bool = True  # as many have closed as may, or one closes at less than before: it may be any size


def check_windows(check: Check, logs: Sequence[RoundLogs]) -> None:
    """`logs`: of each publication, by version."""
    now: _Open | None = None
    for log in logs:
        if now is None or (now.lineage, now.version + 1) != (log.lineage, log.version):
            now = _Open(log.lineage, log.version)
            if len(log.rounds) and log.rounds["round"][0] == 0:
                now.total = now.scored = now.trained = 0
                now.least, now.full = _least(log, 0), False
        where = f"snapshot {log.version}"
        windows, total = log.metrics.get("windows"), log.metrics.get("total")
        rows = [_rows(window) for window in windows] if isinstance(windows, list) else [None]
        closed = np.flatnonzero(log.rounds["closed_window"])
        if len(rows) != len(closed) or None in rows or (log.rounds["closed_window"] > 1).any():
            check.problems.append(f"{where}: {len(closed)} windows close, its metrics have {windows!r:.80}")
            now = None
            continue
        check.problems += [f"{where}: {text}" for text in _passed(now, log, closed.tolist(), rows, _rows(total))]
        now.version = log.version
        now.full |= len(rows) >= most_windows(total if isinstance(total, Mapping) else ())
        if now.scored is not None and not (0 <= now.scored < now.least or now.full):
            check.problems.append(f"{where}: the open window has {now.scored} rows, one closes at {now.least}")
            now = None


def _passed(now: _Open, log: RoundLogs, closed: list[int], rows: list[Any], total: int | None) -> list[str]:
    """Returns what is wrong with the windows of a log; `now` becomes the open window after it."""
    found = []
    trained = np.sum([_trained(each) for each in log], axis=0)
    begin, now.full, now.least = 0, now.full or _least(log, 0) < now.least, _least(log, -1)
    for at, scored in zip(closed, rows, strict=True):
        least, before = _least(log, at), scored - int(trained[at])
        since = None if now.trained is None else now.trained + int(trained[begin : at + 1].sum())
        if scored < least or (since is not None and scored > since) or (before >= least and not now.full):
            found.append(f"a window of {scored} rows closes with {since} more rows trained, one closes at {least}")
        now.trained, now.full, begin = 0, False, at + 1
    now.trained = None if now.trained is None else now.trained + int(trained[begin:].sum())
    known = now.scored is not None and now.total is not None and total is not None
    now.scored = now.scored + total - now.total - sum(rows) if known else None  # type: ignore[operator]
    now.total = total
    return found


def _trained(log: RoundLog) -> Any:
    """Returns the rows that each round trained."""
    counts = log.rounds["slots"].astype(np.int64)
    return np.diff(np.cumsum([0, *log.slots["trained"]], dtype=np.int64)[np.cumsum([0, *counts])])


def _least(log: RoundLogs, at: int) -> int:
    """Returns the rows from which on a window closes: those of a fold of many hosts go by no host's settings."""
    if log.is_folded:
        return window_rows(1, 1)
    terms = log.first.terms_at(int(log.rounds["round"][at]))
    return window_rows(terms.round_slots, terms.slot.row_capacity)


def _rows(figures: object) -> int | None:
    rows = figures.get("rows") if isinstance(figures, Mapping) else None
    return rows if isinstance(rows, int) else None
