"""The newest manifest is what control says was published last, or nothing is trained; --fresh goes on above both."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AdminClient

from streamtrain.kafka.admin import Admin
from streamtrain.kafka.control import ControlTopic
from streamtrain.topics.control import Control
from streamtrain.topics.topic import job_topics
from tests.e2e.harness import LiveJob


def control(job: LiveJob) -> Control:
    with ControlTopic({"bootstrap.servers": job.bootstrap}, f"{job.name}.control") as topic:
        return topic.look()


def made_anew(job: LiveJob, key: str) -> None:
    """Deletes the topic and makes it again, empty."""
    name = f"{job.name}.{key}"
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([name])[name].result(20)
    Admin(job.bootstrap).ensure(wish for wish in job_topics(job.name) if wish.key == key)


def test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(2000)
    last = job.train("--until-end")[-1]["version"]
    said = control(job).newest
    assert said is not None and said.version == last and said.digest == job.newest().digest
    made_anew(job, "snapshots")
    refused = job.command("train", "--until-end")
    assert refused.returncode == 1, refused.stderr
    assert f"expected version {last}, digest {said.digest.hex()[:12]}" in refused.stderr
    assert "found none" in refused.stderr and "--fresh" in refused.stderr
    assert control(job).newest == said, "nothing was published"
    job.train("--until-end", "--fresh")
    with job.topic() as topic:
        assert min(located.manifest.version for located in topic.list()) > last


def test_runs_count_on_from_the_manifest_where_control_was_lost(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    for part in range(3):
        job.produce(500, seed=part)
        job.train("--until-end")
    assert sorted(control(job).runs) == [1, 2, 3]
    made_anew(job, "control")
    job.produce(500, seed=3)
    job.train("--until-end")
    found = control(job)
    assert sorted(found.runs) == [4] and job.newest().manifest.run == found.runs[4].run
    assert found.newest is not None and found.newest.digest == job.newest().digest


def test_a_run_says_how_it_ended(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=0.1)
    job.produce(500)
    job.train("--until-end")
    job.produce_values([b"junk"] * 2000)
    assert job.command("train", "--until-end").returncode == 1
    ends = control(job).ends
    assert [(number, ends[number].exit_code) for number in sorted(ends)] == [(1, 0), (2, 1)]
    assert ends[1].reason == "the end of what was asked for" and "are dead letters" in ends[2].reason
