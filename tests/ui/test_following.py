"""A job that is followed over broken topics: it says so, and the others go on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trained_job import TrainedJob
from waiting import wait_for

from streamtrain.clients.dead_letters import Resender, Stray, letter_at, read_dead_letters
from streamtrain.errors import StreamtrainError
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin, TopicWish
from streamtrain.ui import charts, drawing
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.following import Following
from streamtrain.ui.points import Points
from streamtrain.ui.sampling import Sampling
from tests.e2e.harness import LiveJob
from tests.ui.test_server import more, trained


@pytest.mark.parametrize(("topic", "key"), [("snapshots", b"s/0003/m"), ("control", b"run/7"), ("rounds", b"9/0")])
def test_messages_not_ours_are_errors_and_publications_stay(kafka: Any, tmp_path: Path, topic: str, key: bytes) -> None:
    job = trained(kafka, tmp_path, rows=600)
    with closing(Following(job.name, job.job.kafka)) as following:
        following.watched()
        wait_for(lambda: len(following.publications))
        known = len(following.publications)
        job.produce_messages([{"key": key, "value": b"\x81\xa4junk\xc0"}], f"{job.name}.{topic}")
        wait_for(lambda: following.error)
        following.watched()
        assert topic in following.error and len(following.publications) == known
        assert following.state == "broken"  # Kafka answers: it is not away


def test_a_dead_letter_that_is_none_is_counted_and_the_others_go_on(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=1.0)
    job.produce_values([b"\xc1"] * 2, partition=0)
    more(job, 600)
    with closing(Following(job.name, job.job.kafka)) as following:
        following.watched()
        wait_for(lambda: following.standing.get("dead_letters"))
        strays = [{"key": b"x", "value": value} for value in (b"\x81\xa4junk\xc0", b"")]
        job.produce_messages(strays, f"{job.name}.dead-letters")
        following.watched()
        wait_for(lambda: following.standing["dead_letters_not_ours"] == 2)
        assert following.state == "ended" and following.error == ""
        job.produce_values([b"\xc1"], partition=0)
        more(job, 0)
        following.watched()
        wait_for(lambda: sum(following.standing["dead_letters"].values()) == 3)
        assert following.standing["dead_letters_not_ours"] == 2  # each once
        letters = Sampling(following).letters().result(60)
        assert len(letters.newest) == 3 and letters.strays == 2
    assert [each.letter.rows[0].row_to for each in read_dead_letters(job.job)] == [1, 1, 1]
    found: list[Stray] = []
    list(read_dead_letters(job.job, on_stray=found.append))
    place = found[0]
    with pytest.raises(StreamtrainError, match=rf"\[{place.partition}\]@{place.offset}: dead letter: expected header"):
        letter_at(job.job, f"{place.partition}@{place.offset}")
    assert Resender(job.job).look().letters == 0 and len(list(Resender(job.job).send(f"{job.name}.records"))) == 1


def test_a_failure_of_ours_ends_no_thread(kafka: Any, trained_job: TrainedJob, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [ZeroDivisionError("ours")]

    def failing(self: Following, logs: Any) -> None:
        if failures:
            raise failures.pop()
        real(self, logs)

    real = Following._take_logs
    monkeypatch.setattr(Following, "_take_logs", failing)
    with closing(Following(trained_job.name, trained_job.job.kafka)) as following:
        following.watched()
        wait_for(lambda: not failures)
        wait_for(lambda: len(following.publications) and not following.error)


def test_topics_that_only_look_like_a_jobs(kafka: Any) -> None:
    """Another program's: an empty pair of them is a job that waits."""
    name = kafka.fresh_name("alien")
    Admin(kafka.bootstrap).ensure([TopicWish(key, f"{name}.{key}", 1) for key in ("snapshots", "control")])
    with closing(Cluster(KafkaSettings({"bootstrap.servers": kafka.bootstrap}))) as cluster:
        found = wait_for(lambda: cluster.of(name))
        assert found.ready.wait(60)
        assert (found.state, found.error) == ("waiting", "")


def test_points_that_were_thinned_meanwhile_are_drawn_whole() -> None:
    """A page that was hidden for long gets the older points too, for it draws anew."""
    points = Points(most=10)
    for at in range(4):
        points.add(at, at, {"dead": float(at)})
    job: Any = SimpleNamespace(name="job", publications=points)
    chart = charts.REGISTRY.get("dead")
    after = drawing.drawn(job, chart, drawing.BY_TIME, -1, several=False)["after"]
    for at in range(4, 40):
        points.add(at, at, {"dead": float(at)})
    found = drawing.drawn(job, chart, drawing.BY_TIME, after, several=False)
    assert found["anew"]
    assert found["lines"][0]["points"][:: len(found["lines"][0]["points"]) - 1] == [(0, 0.0), (39, 39.0)]
