"""`streamtrain serve` beside a trainer, and under load for a while: no request fails, the memory stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from publisher import Publisher
from served_http import ROW, Served, job_file, serving
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows

MODEL = SmallModel.make()
FLAT = 1.05  # memory of the last third, of the first's
SLACK_BYTES = 8 << 20  # what an allocator keeps, which counts for little in a long run


class Asking:
    """Clients that ask one after the other until they are stopped; every answer must be whole."""

    def __init__(self, server: Served, path: str, body: Any, pause_s: float, clients: int = 2) -> None:
        self._server, self._path, self._body, self._pause_s = server, path, body, pause_s
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        self.versions: set[int] = set()
        self.answers, self.failures = 0, list[str]()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._server.event["url"], timeout=60) as client:
            while not self._stop.is_set():
                try:
                    answer = client.post(self._path, json=self._body)
                    assert answer.status_code == 200, answer.text
                    self.versions.add(answer.json()["version"])
                    self.answers += 1
                except Exception as error:
                    self.failures.append(repr(error))
                time.sleep(self._pause_s)

    @contextmanager
    def going(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()


def test_a_trainers_snapshots_are_served_as_they_come(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, prefix="served")
    job.produce(2_000)
    trainer = threaded.Run(job.path)
    trainer.wait_event("published", rows=2_000)
    row = {name: cell for name, cell in next(rows(1, seed=9)).items() if name != "y"}
    with serving(job.path) as server:
        server.wait_ready()
        asking = Asking(server, f"/predict/{job.name}", row, 0.0)
        with asking.going():
            for part in range(1, 6):
                seen = len(asking.versions)
                job.produce(2_000, seed=part)
                wait_for(lambda seen=seen: len(asking.versions) > seen)
            assert trainer.drain() == 0
            newest = job.newest().manifest.version
            wait_for(lambda: newest in asking.versions)
        assert asking.failures == [] and len(asking.versions) >= 5
        with LiveModel(job.name, kafka.bootstrap) as model:
            wait_for(lambda: model.version == newest)
            assert server.post(f"/predict/{job.name}", row).json()["prediction"] == model.predict(row)["prediction"]
        assert server.stop() == 0
    job.verified()


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_load_and_publications(kafka: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seconds = request.config.getoption("--load-seconds")
    name = kafka.fresh_name("served")
    publisher = Publisher(kafka.bootstrap, name)
    MODEL.put(publisher, 1)
    with serving(job_file(tmp_path, name, kafka.bootstrap), options=("-q",)) as server:
        server.wait_ready()
        process, taken = psutil.Process(server.process.pid), list[int]()
        one = Asking(server, f"/predict/{name}", ROW, 0.002)
        many = Asking(server, f"/predict/{name}", [ROW] * 1_000, 0.02, clients=1)
        with one.going(), many.going():
            version, until_s = 1, time.monotonic() + seconds
            while time.monotonic() < until_s:
                begun_s = time.monotonic()
                version += 1
                MODEL.put(publisher, version)
                wait_for(lambda version=version: max(one.versions, default=0) >= version)
                taken.append(process.memory_info().rss)
                time.sleep(max(0.0, begun_s + 1 - time.monotonic()))
        assert one.failures + many.failures == []
        assert one.answers > 0 and many.answers > 0 and max(one.versions) == version
        _is_flat(taken)
        assert server.stop() == 0


def _is_flat(taken: list[int]) -> None:
    """Medians, for one publication is under way at some of the looks. The first look is before all has been used."""
    third = max(1, len(taken) // 3)
    first, last = np.median(taken[1 : 1 + third]), np.median(taken[-third:])
    assert last <= first * FLAT + SLACK_BYTES, taken


def test_memory_that_grows_is_seen() -> None:
    _is_flat([100 << 20] * 60)
    with pytest.raises(AssertionError):
        _is_flat([(100 << 20) + at * (3 << 20) for at in range(60)])
