"""The cores that a run's workers get."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.run import cores
from streamtrain.run.arena import worker_config

TABLES = {"columns": {"x": {}, "y": {"role": "label"}}}


def job(**train: Any) -> Job:
    return Job.from_tables({**TABLES, "train": train})


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores 2 to 9, and no quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2, 10)))
    monkeypatch.setattr(cores, "usable_count", lambda: 8)


def test_auto_gives_each_worker_its_own_cores(eight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores.cores_of_workers(job(workers=2, threads_per_worker=3, affinity="auto")) == [[2, 3, 4], [5, 6, 7]]
    assert cores.cores_of_workers(job(workers=8, affinity="auto")) == [[core] for core in range(2, 10)]
    assert cores.cores_of_workers(job(workers=3, threads_per_worker=3, affinity="auto")) == []
    assert cores.cores_of_workers(job(workers=2, affinity="off")) == []
    monkeypatch.setattr(cores, "usable_count", lambda: 3)
    assert cores.cores_of_workers(job(workers=4, affinity="auto")) == [], "a quota leaves too few"


def test_cores_that_are_not_there_are_refused_before_anything_starts(eight: None) -> None:
    assert cores.cores_of_workers(job(workers=2, affinity="2-3;9")) == [[2, 3], [9]]
    told = r"train.affinity: expected for worker 1 cores that this process may use \(2-9\), got 0,10-11; name others"
    with pytest.raises(UserMistake, match=told):
        worker_config(job(workers=2, affinity="2;0,4,10-11"))


def test_more_threads_than_cores_are_told(eight: None, caplog: pytest.LogCaptureFixture) -> None:
    worker_config(job(workers=2, threads_per_worker=4))
    assert caplog.records == []
    assert worker_config(job(workers=3, threads_per_worker=3))["threads"] == 3
    (told,) = caplog.records
    assert "9 threads of 3 workers have 8 cores: expected a core for each" in told.getMessage()


@pytest.mark.parametrize(
    ("quotas", "most"),
    [
        ({"": "max 100000"}, None), ({"": "150000 100000"}, 1), ({"a/b": "50000 100000"}, 1), ({}, None),
        ({"a": "200000 100000", "a/b": "max 100000"}, 2), ({"a/b": "no quota"}, None), ({"other": "1 100000"}, None),
    ],
)  # fmt: skip
def test_a_control_groups_quota_counts(quotas: dict[str, str], most: int | None, tmp_path: Path) -> None:
    for name, text in quotas.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cpu.max").write_text(text + "\n")
    group = tmp_path / "cgroup"
    group.write_text("1:name=systemd:/x\n0::/a/b\n")
    usable = len(os.sched_getaffinity(0))
    assert cores.usable_count(tmp_path, group) == (usable if most is None else min(most, usable))
    assert cores.usable_count(tmp_path, tmp_path / "none") == usable


def test_cores_are_shown_as_taskset_writes_them() -> None:
    assert [cores.shown(each) for each in ([], [3], [0, 1, 2], [0, 2, 3, 7])] == ["", "3", "0-2", "0,2-3,7"]
