"""A setting that is "off" stays off in the job that the processes and the manifest have."""

from __future__ import annotations

import pytest

from streamtrain.job import Job


@pytest.mark.parametrize("setting", ["train.round_interval", "train.batch_growth"])
def test_off_goes_through_the_effective_job(setting: str) -> None:
    text = (
        'name = "job"\n[kafka]\nbootstrap.servers = "localhost:9092"\n'
        '[columns]\nx = { standardize = { clip = "off" } }\ny = { role = "label" }\n'
    )
    job = Job.parse(text, sets=[f'{setting}="off"'])
    other = Job.from_effective(job.effective())
    assert job.effective()["train"][setting.partition(".")[2]] == "off"
    assert other.train == job.train and other.schema == job.schema and other.digest() == job.digest()
    assert job.digest() != Job.parse(text).digest()
