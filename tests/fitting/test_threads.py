"""A process of a run has the threads DESIGN gives it: what works in parallel are workers, not a library's pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import wait_for

import streamtrain
from tests.fitting.example import TABLES, columns, dicts
from tests.fitting.left import workers


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="NumPy's pool has one thread where there is one core")
def test_a_worker_has_no_pool_of_numpys(own_workers: None) -> None:
    counts: list[int] = []

    def rows() -> Iterator[dict[str, Any]]:
        yield from dicts(columns(100))
        wait_for(lambda: workers() and all(map(_has_numpy, workers())))
        counts.extend(psutil.Process(pid).num_threads() for pid in workers())

    streamtrain.fit({**TABLES, "train": {**TABLES["train"], "workers": 2}}, rows())
    assert counts == [1, 1]


def _has_numpy(pid: int) -> bool:
    """And what is loaded after it."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return "openblas" in maps and "arena" in maps
