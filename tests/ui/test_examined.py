"""Figures and values of snapshots that were looked into stay bounded, and are of one job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from streamtrain.ui.block_figures import figures
from streamtrain.ui.examined import Examined, Snapshots

SIZE = 1000


def of(version: int, lineage: str = "a", digest: bytes = b"") -> tuple[Examined, dict[str, Any]]:
    values = {"w": np.full(SIZE, float(version), np.float32)}
    made = figures({"w": (SIZE,)}, values, {})
    return Examined(version, digest or bytes([version % 256]), lineage, 0, 10 * version, made), values


def filled(numbers: Iterable[int], snapshots: Snapshots | None = None, **more: Any) -> Snapshots:
    snapshots = Snapshots() if snapshots is None else snapshots
    for version in numbers:
        snapshots.add(*of(version), **more)
    return snapshots


def versions(snapshots: Snapshots) -> list[int]:
    return [each.version for each in snapshots.all]


def test_changes_are_between_neighbours_whatever_order_they_come_in() -> None:
    snapshots = filled((3, 1, 2))
    assert versions(snapshots) == [1, 2, 3]
    assert snapshots.change(1, 2)["w"].magnitude == 1 and snapshots.change(1, 2)["w"].updates == 10
    assert snapshots.change(1, 3)["w"].magnitude == 2 and snapshots.change(2, 3)["w"].magnitude == 0.5
    assert snapshots.change(3, 9) == {}


def test_lineages_are_not_compared_and_a_job_begun_anew_forgets_the_old_one() -> None:
    snapshots = filled([1])
    snapshots.add(*of(2, lineage="b"))
    assert snapshots.change(1, 2) == {}
    snapshots = filled((1, 2, 3))
    snapshots.add(*of(2, lineage="b", digest=b"another"))
    assert versions(snapshots) == [2] and snapshots.change(1, 2) == {}


def test_values_are_dropped_and_figures_stay() -> None:
    snapshots = filled(range(1, 11), Snapshots(most_bytes=4 * SIZE * 4), wanted=[2])
    kept = [version for version in versions(snapshots) if snapshots.has_values(version)]
    assert len(kept) == 4 and kept[0] == 2 and kept[-1] == 10 and versions(snapshots) == list(range(1, 11))
    assert snapshots.change(3, 4)["w"].magnitude == pytest.approx(1 / 3)  # it was computed when it came


def test_figures_are_of_so_many_and_of_those_that_are_held() -> None:
    assert versions(filled(range(1, 21), Snapshots(most=6), wanted=[4], held=[1, 2])) == [1, 2, 4, 18, 19, 20]
