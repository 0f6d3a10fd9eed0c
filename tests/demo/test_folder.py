"""The demo's folder: fresh names, and a job file that is a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamtrain.demo.folder import Folder, fresh_name, job_text, jobs_in
from streamtrain.errors import UserMistake
from streamtrain.job import Job


def test_fresh_names():
    assert fresh_name([]) == "flights"
    assert fresh_name(["flights.records", "flights.snapshots", "__consumer_offsets"]) == "flights-2"
    assert fresh_name(["flights-2.records", "other.records"]) == "flights"
    assert fresh_name(["flights.control", "flights-2.control", "flights-10.dead-letters"]) == "flights-3"


def test_jobs_in_the_order_they_were_made():
    topics = ["flights-10.records", "flights.records", "flights-2.control", "flights-2.records", "flightsx.records"]
    assert jobs_in(topics) == ["flights", "flights-2", "flights-10"]


def test_the_job_file_is_a_job_and_an_earlier_one_is_kept(tmp_path):
    folder = Folder(tmp_path / "demo")
    folder.make()
    folder.write_job(job_text("flights", "localhost:1", 2))
    first = folder.job_file.read_text()
    folder.write_job(job_text("flights-2", "localhost:2", 3))
    job = Job.load(folder.job_file)
    assert (job.name, job.kafka.bootstrap, job.train.workers) == ("flights-2", "localhost:2", 3)
    assert not job.warnings
    assert folder.kept_job_file.read_text() == first


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserMistake, match="expected to make a folder"):
        Folder(Path(tmp_path / "file" / "demo")).make()
