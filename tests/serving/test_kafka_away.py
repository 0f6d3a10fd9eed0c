"""Kafka goes away and comes back: a predictor, a server and a live model keep what they have, and go on."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from prediction_bench import Bench
from prometheus_client.parser import text_string_to_metric_families
from publisher import Publisher
from served_http import ROW, job_file, serving
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import KafkaUnreachable
from tests.e2e import commands

MODEL = SmallModel.make()
JOB = """
name = "outage"
[kafka]
bootstrap.servers = "{bootstrap}"
[columns]
"{{a,b}}" = {{}}
y = {{ role = "label" }}
"""


class Predicting:
    """A running `streamtrain predict` with metrics."""

    def __init__(self, path: Path) -> None:
        self.log = path.with_suffix(".log")
        with self.log.open("w") as errors:
            arguments = ["predict", str(path), "--metrics-port", "0", "--log-format", "json"]
            self.process = commands.start(arguments, errors, {})
        self.port = wait_for(lambda: next((log["port"] for log in self.logs() if "port" in log), None))

    def logs(self) -> list[Any]:
        return [json.loads(line) for line in self.log.read_text().splitlines(True) if line.endswith("\n")]

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=60)

    def is_ready(self) -> bool:
        return self.get("/ready").status_code == 200

    def values(self) -> Counter[str]:
        found = Counter[str]()
        for family in text_string_to_metric_families(self.get("/metrics").text):
            for sample in family.samples:
                found[sample.name] += sample.value
        return found

    def lag(self) -> float:
        return self.values()["streamtrain_lag_offsets"]


def test_all_go_on_with_what_they_have_and_with_newer_ones_then(private_kafka: Any, tmp_path: Path) -> None:
    broker = private_kafka(data=tmp_path / "kafka")
    path = tmp_path / "outage.toml"
    path.write_text(JOB.format(bootstrap=broker.bootstrap))
    bench = Bench(broker.bootstrap, "outage")
    MODEL.put(Publisher(broker.bootstrap, "served"), 1)
    predict = Predicting(path)
    try:
        becomes_ready(predict, bench)
        with (
            serving(job_file(tmp_path, "served", broker.bootstrap)) as server,
            LiveModel("served", bootstrap=broker.bootstrap) as model,
        ):
            server.wait_ready()
            model.wait_ready(240)
            before = model.predict(ROW)

            broker.kill()
            wait_for(lambda: not predict.is_ready())
            wait_for(lambda: not model.connected)
            assert isinstance(model.error, KafkaUnreachable) and repr(model).endswith("no connection>")
            model.wait_ready(0)  # it has one
            assert model.predict(ROW) == before
            wait_for(lambda: "expected an answer from Kafka" in server.log.read_text())
            assert server.post("/predict/served", ROW).json()["version"] == 1
            assert server.get("/v2/health/ready").status_code == 200

            broker.start()
            wait_for(predict.is_ready)
            wait_for(lambda: model.connected)
            assert model.error is None
            MODEL.put(Publisher(broker.bootstrap, "served"), 2)
            wait_for(lambda: model.version == 2)
            assert model.predict(ROW) != before
            wait_for(lambda: server.post("/predict/served", ROW).json()["version"] == 2)
            assert server.stop() == 0
        bench.ask({"a": 1, "b": 1}, "after")
        bench.flush()
        wait_for(lambda: predict.values()["streamtrain_requests_total"] == 11)
        predict.process.send_signal(signal.SIGTERM)
        assert predict.process.wait(240) == 0
    finally:
        predict.process.kill()


def becomes_ready(predict: Predicting, bench: Bench) -> None:
    """The predictor is ready with the first snapshot, and answers earlier requests."""
    waiting = "waiting for the first snapshot of outage"
    wait_for(lambda: any(log["message"].startswith(waiting) for log in predict.logs()))
    assert not predict.is_ready()
    for i in range(10):
        bench.ask({"a": i, "b": 1} if i else "bad", str(i))
    bench.flush()
    wait_for(lambda: predict.lag() == 10)
    ServedModel(bench.bootstrap, "outage").put()
    wait_for(predict.is_ready)
    wait_for(lambda: predict.values()["streamtrain_requests_total"] == 10)
    wait_for(lambda: predict.lag() == 0)
    found = predict.values()
    assert (found["streamtrain_request_errors_total"], found["streamtrain_snapshot_version"]) == (1, 1)
