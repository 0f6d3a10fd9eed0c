"""The figures of one publication, as its round log tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.metrics import numbers
from streamtrain.topics.publication_logs import RoundLogs

HISTORY_S = 30 * 86_400.0  # rows whose events are older are learned from the past: their age tells nothing of the way


def figures_of(log: RoundLogs, before: RoundLogs | None = None) -> dict[str, float]:
    """By name; of the window and in total as "window.auc". `before`: the publication before it, if that is known."""
    found = {
        **_spans(log.metrics),
        "dead": float(log.slots["dead"].sum()),
        "workers": float(log.workers),
        "version": float(log.version),
    }
    age_s = (log.created_ms - log.newest_event_ms) / 1000
    if log.newest_event_ms >= 0 and age_s < HISTORY_S:
        found["freshness_s"] = age_s
    if before is not None and before.run == log.run and log.created_ms > before.created_ms:
        found["interval_s"] = (log.created_ms - before.created_ms) / 1000
        found["rows_per_second"] = log.rows_trained / found["interval_s"]
    return found


def rows_of(log: RoundLogs) -> int:
    """Learned in total by then; -1 where the log does not say."""
    return int(numbers(log.metrics.get("total") or {}).get("rows", -1))


def _spans(metrics: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{span}.{name}": float(figure)
        for span in ("window", "total") for name, figure in numbers(metrics.get(span) or {}).items()
    }  # fmt: skip
