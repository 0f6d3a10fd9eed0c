"""The example application, run by the real faust worker on a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from publisher import Publisher
from small_model import SmallModel

from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.topics.topic import TopicWish, job_topics

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = SmallModel.make()
TIMEOUT_S = 60
DISTANCES = {"JFK-LAX": 7.5, "EWR-SFO": 3.25}


def departures(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "flight": f"F{number}", "dep_delay": number % 7, "hour": number % 5, "carrier": "UA",
            "origin": "JFK" if number % 2 else "EWR", "dest": "LAX" if number % 2 else "SFO",
        }
        for number in range(first, first + count)
    ]  # fmt: skip


class Application:
    """The worker, the topics around it and what they hold."""

    def __init__(self, bootstrap: str, job: str, folder: Path) -> None:
        self.job = job
        self._log = folder / "worker.log"
        own = [TopicWish(key, f"{job}.{key}", 1) for key in ("routes", "departures", "arrivals", "scored")]
        wishes = job_topics(job, {"records": {"partitions": 1}})
        Admin(bootstrap).ensure([*own, *(wish for wish in wishes if wish.key == "records")])
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._bootstrap = bootstrap
        environment = {**os.environ, "FLIGHTS_JOB": job, "FLIGHTS_BROKER": f"kafka://{bootstrap}"}
        command = ["-m", "faust", "-A", "flights_faust", "--datadir", str(folder / "data"), "worker", "-l", "info"]
        with self._log.open("wb") as log:
            self.worker = subprocess.Popen(
                [sys.executable, *command, "--without-web"], cwd=EXAMPLES, env=environment, stdout=log, stderr=log
            )

    def send(self, topic: str, values: list[dict[str, Any]], key: str = "flight") -> None:
        for value in values:
            self._producer.produce(f"{self.job}.{topic}", json.dumps(value), value[key])
        assert self._producer.flush(10) == 0

    def read(self, topic: str, count: int) -> list[dict[str, Any]]:
        """The first `count` values of the topic."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "test", "fetch.wait.max.ms": "10"}
        values: list[dict[str, Any]] = []
        until = time.monotonic() + TIMEOUT_S
        with KafkaConsumer(settings) as consumer:
            consumer.assign(f"{self.job}.{topic}", [(0, 0)])
            while len(values) < count:
                assert time.monotonic() < until and self.worker.poll() is None, self.log[-8000:]
                values += [json.loads(m.value or b"") for m in consumer.consume(1000, 0.1) if not m.error]
        return values

    @property
    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> int:
        self.worker.send_signal(signal.SIGTERM)
        return self.worker.wait(240)


@pytest.fixture
def application(kafka: Any, tmp_path: Path) -> Iterator[Application]:
    pytest.importorskip("faust", reason="not installed (extra faust)")
    app = Application(kafka.bootstrap, kafka.fresh_name("flights"), tmp_path)
    yield app
    if app.worker.poll() is None:
        app.worker.kill()
        app.worker.wait()


def test_departures_are_scored_and_arrivals_become_training_records(kafka: Any, application: Application) -> None:
    publisher = Publisher(kafka.bootstrap, application.job)
    MODEL.put(publisher, 1)
    routes = [{"origin": key[:3], "dest": key[4:], "distance": value} for key, value in DISTANCES.items()]
    application.send("routes", routes, key="origin")
    application.read("scoring-distances-changelog", 2)  # Faust gives no order between topics
    rows = departures(40)
    application.send("departures", rows)
    scored = application.read("scored", 40)
    assert [(value["flight"], value["version"]) for value in scored] == [(row["flight"], 1) for row in rows]
    enriched = [{**row, "distance": DISTANCES[f"{row['origin']}-{row['dest']}"]} for row in rows]
    with LiveModel(application.job, kafka.bootstrap) as model:
        model.wait_ready(20)
        assert [value["late"] for value in scored] == [answer["prediction"] for answer in model.predict(enriched)]

    arrivals = [{"flight": row["flight"], "arr_delay": at} for at, row in enumerate(rows)]
    application.send("arrivals", [*arrivals, {"flight": "never-departed", "arr_delay": 3}])
    records = application.read("records", 40)
    assert records == [{**row, "late": int(at > 15)} for at, row in enumerate(enriched)]

    MODEL.put(publisher, 2)
    until = time.monotonic() + TIMEOUT_S
    sent, newest = 40, 1
    while newest != 2:
        assert time.monotonic() < until
        application.send("departures", departures(1, first=1000 + sent))
        sent += 1
        newest = application.read("scored", sent)[-1]["version"]
    assert application.stop() == 0


def test_an_application_that_waits_for_its_first_snapshot_stops_at_once(application: Application) -> None:
    application.send("departures", departures(1))
    until = time.monotonic() + TIMEOUT_S
    while "Worker ready" not in application.log:
        assert time.monotonic() < until and application.worker.poll() is None, application.log[-8000:]
        time.sleep(0.05)
    begun = time.monotonic()
    assert application.stop() == 0
    assert time.monotonic() - begun < 120  # it does not wait for the snapshot


def test_before_the_application_starts_there_is_no_model() -> None:
    faust = pytest.importorskip("faust", reason="not installed (extra faust)")
    from streamtrain.integrations.faust import bootstrap_of, live_model

    app = faust.App("app", broker="kafka://one:9092;kafka://two")
    model = live_model(app, "flights")
    assert (model.ready, model.version, model.digest, model.age_s) == (False, None, None, None)
    with pytest.raises(UserMistake, match="expected a started application"):
        model.predict({})
    assert bootstrap_of(app) == "one:9092,two:9092"
