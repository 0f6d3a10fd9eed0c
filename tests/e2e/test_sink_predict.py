"""One trained job and all that answers with it: predictors of both deliveries that are killed and started again, a
server, a LiveModel. Every answer names its snapshot, is the same bits wherever it comes from, and is given once.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from prediction_bench import PARTITIONS, Bench
from served_http import Served, serving
from waiting import wait_for

from streamtrain import LiveModel
from streamtrain.clients.live_model import ModelAnswer
from streamtrain.job import Job
from streamtrain.run.roles import predictor
from tests.e2e.harness import LiveJob, Running, answered, rows
from tests.e2e.threaded import rows_after

DELIVERIES = ["exactly_once", "at_least_once"]
ROWS = [{name: cell for name, cell in row.items() if name != "y"} for row in rows(60, seed=7)]
TIMES = 10  # each row of a wave of requests
TOPICS = f"requests = {{ partitions = {PARTITIONS} }}\npredictions = {{ partitions = {PARTITIONS} }}"
SOON = 'consumer.session.timeout.ms = "6000"\nconsumer.heartbeat.interval.ms = "500"'  # that a member is gone


class Asking:
    """Waves of requests whose keys say which rows they ask for."""

    def __init__(self, job: LiveJob) -> None:
        self.bench, self.keys = Bench(job.bootstrap, job.name), set[str]()

    def wave(self, name: str) -> None:
        for number in range(TIMES * len(ROWS)):
            self.ask(f"{name}.{number}", ROWS[number % len(ROWS)], number % PARTITIONS)
        self.ask(f"{name}.all", ROWS, 0)
        self.bench.flush()

    def ask(self, key: str, value: Any, partition: int) -> None:
        self.bench.ask(value, key, partition=partition)
        self.keys.add(key)

    def wait_answered(self) -> None:
        wait_for(lambda: {(key or b"").decode() for key in self.bench.counts()} >= self.keys)

    def wait_version(self, version: int) -> None:
        """Returns when the predictor answers with that snapshot."""
        for number in range(10_000):
            self.ask(key := f"at_least_once.probe.{number}", ROWS[0], 0)
            self.bench.flush()
            self.wait_answered()
            if self.bench.answers()[key].version == version:
                return


def member(job: LiveJob, delivery: str) -> Running:
    return job.start("predict", "--set", f"predict.delivery={delivery}")


def check_server(server: Served, job: LiveJob, expected: ModelAnswer[Any]) -> None:
    many = server.post(f"/predict/{job.name}", ROWS).json()
    one = server.post(f"/predict/{job.name}", ROWS[0]).json()
    newest = job.newest()
    for answer in (many, one):
        assert (answer["version"], answer["digest"]) == (newest.manifest.version, newest.digest.hex())
        assert answer["lineage"] == newest.manifest.lineage and answer["age_s"] >= 0
    assert answered(many["predictions"]) == answered(expected.values)
    assert answered([one]) == answered(expected.values[:1])


def check_answers(asking: Asking, expected: dict[int, ModelAnswer[Any]]) -> None:
    """Every request has its answer, once where the delivery says so, by the snapshot that it names."""
    counts = {(key or b"").decode(): count for key, count in asking.bench.counts().items()}
    assert counts.keys() == asking.keys
    assert {count for key, count in counts.items() if key.startswith("exactly_once")} == {1}
    seen = set()
    for key, answer in asking.bench.answers().items():
        by, row = expected[answer.version], key.rpartition(".")[2]
        seen.add((key.split(".")[1], answer.version))
        assert answer.digest == by.digest and answer.error is None, key
        found = answer.prediction if row == "all" else [answer.prediction]
        number = 0 if "probe" in key or row == "all" else int(row) % len(ROWS)
        assert answered(found) == answered(by.values[number : number + len(found)]), key
    old, new = sorted(expected)
    assert {("first", old), ("second", old), ("third", old), ("fourth", new)} <= seen
    assert not {("first", new), ("fourth", old)} & seen


def test_all_that_predict_answer_alike(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, format="json", more_topics=TOPICS)
    job.path.write_text(job.path.read_text().replace("[kafka]\n", f"[kafka]\n{SOON}\n"))
    job.produce(1000)
    rows_after(job.path)
    asking, expected = Asking(job), dict[int, ModelAnswer[Any]]()
    with LiveModel(job.name, bootstrap=job.bootstrap) as live, serving(job.path) as server:

        def newest_everywhere() -> int:
            newest = job.newest()
            version = newest.manifest.version
            wait_for(lambda: live.version == version)
            wait_for(lambda: server.post(f"/predict/{job.name}", ROWS[0]).json().get("version") == version)
            expected[version] = live.answer(ROWS)
            assert expected[version].digest == newest.digest.hex()
            check_server(server, job, expected[version])
            return version

        newest_everywhere()
        for delivery in DELIVERIES:
            first = member(job, delivery)
            asking.wave(f"{delivery}.first")
            wait_for(lambda delivery=delivery: any(key.startswith(delivery) for key in asking.bench.answers()))
            first.process.kill()
            asking.wave(f"{delivery}.second")
            second = member(job, delivery)
            asking.wave(f"{delivery}.third")
            asking.wait_answered()
            if delivery == DELIVERIES[-1]:
                job.produce(500, seed=1)
                rows_after(job.path)
                asking.wait_version(newest_everywhere())
                asking.wave(f"{delivery}.fourth")
                asking.wait_answered()
            second.process.terminate()
            second.process.communicate(timeout=240)
            assert second.process.returncode == 0, second.errors()
    assert len(expected) == 2 and len({tuple(answered(each.values)) for each in expected.values()}) == 2
    ended = predictor.answer(predictor.Config.of(Job.load(job.path), until_end=True), threading.Event())
    assert ended["requests"] == 0, "all were answered before"
    check_answers(asking, expected)
