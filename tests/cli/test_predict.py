"""`streamtrain predict` as its operators see it: what it waits for, its readiness and metrics, how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prediction_bench import Bench
from served_model import ServedModel
from waiting import wait_for

NewJob = Callable[..., Path]
PROGRAM = [sys.executable, "-c", "from streamtrain.cli import main; main()"]


class Predicting:
    """A running `streamtrain predict` with metrics, and what it logs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        self._logs: list[Any] = []
        threading.Thread(target=self._read, args=(process.stderr,), daemon=True).start()
        self.port = wait_for(lambda: next((log["port"] for log in self._logs if "port" in log), None))

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            sys.stderr.write(line)  # shown with a failure
            self._logs.append(json.loads(line))

    def said(self, text: str) -> bool:
        return any(log["message"].startswith(text) for log in self._logs)

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    def is_ready(self) -> bool:
        return self.get("/ready")[0] == 200

    def values(self) -> dict[str, float]:
        lines = [line for line in self.get("/metrics")[1].splitlines() if not line.startswith("#")]
        found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
        return {name.replace('{job="outage"}', ""): value for name, value in found.items()}

    def lag(self) -> float:
        """Of all partitions."""
        return sum(value for name, value in self.values().items() if name.startswith("streamtrain_lag_offsets"))


@contextmanager
def predicting(path: Path) -> Iterator[Predicting]:
    command = [*PROGRAM, "predict", str(path), "--metrics-port", "0", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Predicting(process)
        finally:
            process.kill()


def test_readiness_comes_with_the_snapshot_and_goes_with_the_broker(private_kafka: Any, new_job: NewJob) -> None:
    broker = private_kafka()
    path = new_job("outage", broker.bootstrap)
    bench = Bench(broker.bootstrap, "outage")
    with predicting(path) as predict:
        wait_for(lambda: predict.said("waiting for the first snapshot of outage"))
        assert not predict.is_ready()
        for i in range(10):
            bench.ask({"a": i, "b": 1} if i else "bad", str(i))
        bench.flush()
        wait_for(lambda: predict.lag() == 10)
        ServedModel(broker.bootstrap, "outage").put()
        wait_for(predict.is_ready)
        wait_for(lambda: predict.values()["streamtrain_requests_total"] == 10)
        wait_for(lambda: predict.lag() == 0)
        found = predict.values()
        assert (found["streamtrain_request_errors_total"], found["streamtrain_snapshot_version"]) == (1, 1)
        broker.kill()
        wait_for(lambda: not predict.is_ready())
        broker.start()
        wait_for(predict.is_ready)
        bench.ask({"a": 1, "b": 1}, "after")
        bench.flush()
        wait_for(lambda: predict.values()["streamtrain_requests_total"] == 11)
        predict.process.send_signal(signal.SIGTERM)
        assert predict.process.wait(240) == 0
