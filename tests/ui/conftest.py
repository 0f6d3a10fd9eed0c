"""`streamtrain ui` as a user starts it, its server in this process, and a real browser before it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from trained_job import trained_job as trained_job

from streamtrain.background import in_background
from streamtrain.job import Job
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.serving.asgi import LOOPBACK
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.page_server import application, serve
from streamtrain.ui.scraping import Scraping, given
from tests.e2e import commands

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@dataclass(frozen=True)
class Page:
    """A server that runs, and its address."""

    process: Any
    url: str

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        answer = httpx.get(self.url.rstrip("/") + path, headers=headers, timeout=60)
        return answer.status_code, answer.text

    def document(self, path: str, job: str, **query: Any) -> Any:
        status, body = self.get(f"/api/{path}?job={job}" + "".join(f"&{name}={value}" for name, value in query.items()))
        assert status == 200, body
        return json.loads(body)

    def points(self, job: str, **query: str) -> Any:
        return self.document("points", job, **query)

    def lines(self, job: str, chart: str) -> set[str]:
        """The names of the lines in a chart of the system's page."""
        charts = self.points(job, of="system")["charts"]
        assert "progressive_loss" not in charts
        return {line["name"] for each in charts[chart] for line in each["lines"]}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Call it with the command's arguments; what it starts ends with the test."""
    pytest.importorskip("nicegui")
    started: list[Any] = []

    def start(*arguments: str, **environment: str) -> Page:
        errors = (tmp_path / f"ui.{len(started)}.log").open("w+")
        process = commands.start(["ui", *arguments, "--port", "0", "--json"], errors, environment)
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        errors.seek(0)
        assert line, errors.read()
        return Page(process, json.loads(line)["url"])

    yield start
    for process in started:
        process.kill()


class IsolatedCluster(Cluster):
    """The jobs that a test shows, and no others of the tests' Kafka."""

    def _found(self, names: Set[str]) -> list[str]:
        return []

    def show(self, job: Job, metrics: tuple[str, ...]) -> None:
        self._add(job.name, job)
        self._woken.set()
        self.scraping = Scraping([given(each) for each in metrics], self._system_of)

    def clear(self) -> None:
        self.scraping.close()
        for each in [*self._beside.values(), *self._followed.values()]:
            each.close()
        self._followed, self._beside = {}, {}
        self.scraping = Scraping([], self._system_of)


@pytest.fixture(scope="session")
def server_here(kafka: Any) -> Iterator[tuple[Page, IsolatedCluster]]:
    """The server of `streamtrain ui` in a thread: NiceGUI takes one application a process."""
    pytest.importorskip("nicegui")
    cluster = IsolatedCluster(KafkaSettings({"bootstrap.servers": kafka.bootstrap}))
    ready, stop = Future[int](), threading.Event()
    app = application(cluster, LOOPBACK)
    running = in_background(serve, app, LOOPBACK[0], 0, ready.set_result, stop.is_set, name="ui")
    yield Page(running, f"http://{LOOPBACK[0]}:{ready.result(60)}/"), cluster
    stop.set()
    running.result(60)
    cluster.close()


@pytest.fixture
def page_of(server_here: tuple[Page, IsolatedCluster]) -> Iterator[Callable[..., Page]]:
    """Call it with a job, and addresses of metrics, for pages of the job."""
    page, cluster = server_here

    def show(job: Job, *metrics: str) -> Page:
        cluster.show(job, metrics)
        return page

    yield show
    cluster.clear()


@pytest.fixture
def browser() -> Iterator[Any]:
    """A headless Chromium whose console is kept."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver here (Debian's packages of these names)")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1600"):
        options.add_argument(argument)
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()
