"""Figures of a job as a person reads them: ages, counts, the loss beside the constant's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.compute.metrics import constant_of, numbers, usual
from streamtrain.ui.followed_job import Following

NONE = "-"


def age(seconds: float | None) -> str:
    """1.2 s, 34 s, 5 min, 3 h, 2 d."""
    if seconds is None:
        return NONE
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def count(number: float | None) -> str:
    return NONE if number is None else f"{number:,.0f}"


def window(following: Following) -> Mapping[str, float]:
    """Figures of the newest window, else in total."""
    metrics = following.job_status.get("metrics") or {}
    return numbers(metrics.get("window") or metrics.get("total") or {})


def loss_name(figures: Mapping[str, float]) -> str | None:
    """The figure that training is judged by."""
    known = [name for name in figures if not name.startswith("constant_")]
    found = usual(known) if known else ""
    return found if found in figures else None


def loss(following: Following) -> tuple[str, float, float | None] | None:
    """The name, the window's and the constant prediction's; None before there is one."""
    figures = window(following)
    name = loss_name(figures)
    return None if name is None else (name, figures[name], figures.get(constant_of(name)))


def losses(following: Following, most: int = 60) -> list[float]:
    """The newest windows' loss, for a sparkline."""
    found = loss(following)
    if found is None:
        return []
    windows = [numbers(each) for each in following.job_status.get("windows") or []]
    return [each[found[0]] for each in windows if found[0] in each][-most:]


def snapshot(following: Following) -> Mapping[str, Any]:
    return following.job_status.get("snapshot") or {}


def run(following: Following) -> Mapping[str, Any]:
    return following.job_status.get("run") or {}
