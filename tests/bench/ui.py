"""`streamtrain ui` in a browser: how soon a page of an hour is there, how soon it shows a publication, what it costs.

The job's publications are spread over the newest hour. The rival of the page has as many charts as NiceGUI has them,
their points sent with each change; of the jobs' page, two looks a second at every job; of the delay, the limit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from confluent_kafka import Producer
from served_model import ServedModel

from streamtrain.clients.status import JobStatus
from streamtrain.job import Job
from streamtrain.kafka.round_logs import round_logs
from streamtrain.topics.rounds import RoundLog, messages
from tests.bench.bed import Bed, train
from tests.bench.harness import LIMIT, MOST, Line, Run, Sides, bench, once
from tests.bench.serve import Server, our_server, rival_server

OPEN_S, MOVES_S = 2.0, 2.0
HOUR_MS = 3_600_000
CHARTS = 8  # that such a job has points for, with its own
LAST_THROUGHPUT = "return document.querySelector('[data-chart=throughput] .st-last')?.textContent ?? ''"
RIVAL_DRAWN = f"return document.querySelectorAll('canvas').length >= {CHARTS}"
RIVAL = f"""
import random, sys, time
from nicegui import ui

@ui.page("/")
def page():
    now = time.time() * 1000
    points = [[[now - at * 3600, random.random()] for at in range(int(sys.argv[2]), 0, -1)] for _ in range({CHARTS})]
    axes = {{"xAxis": {{"type": "time"}}, "yAxis": {{}}}}
    made = [ui.echart({{**axes, "series": [{{"type": "line", "data": own}}]}}) for own in points]

    def change():
        for chart in made:
            data = chart.options["series"][0]["data"]
            data.append([time.time() * 1000, random.random()])
            del data[0]
            chart.update()

    ui.timer(1.0, change)

ui.run(port=int(sys.argv[1]), host="127.0.0.1", reload=False, show=False, show_welcome_message=False)
"""


def idle(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        time.sleep(0.05)


def cpu_ms_a_second(server: Server, seconds: float) -> float:
    before, begun = server.cpu_s(), time.perf_counter()
    idle(seconds)
    return max(0.1, 1000 * (server.cpu_s() - before) / (time.perf_counter() - begun))


@contextmanager
def browser() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1600"):
        options.add_argument(argument)
    options.binary_location = str(shutil.which("chromium"))
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


def seconds_until(what: Callable[[], Any], begun: float) -> float:
    while not what():
        assert time.perf_counter() - begun < 120, "it is never seen"
        time.sleep(0.01)
    return time.perf_counter() - begun


def opened(driver: Any, url: str, drawn: str) -> float:
    """Seconds from asking for a page to its points: the second time, with scripts that the browser has."""
    found = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        driver.get(url)
        found = seconds_until(lambda: driver.execute_script(drawn), begun)
    return found


class History:
    """Publications of a job, told by copies of the log that a real run has left."""

    def __init__(self, bed: Bed) -> None:
        self.path = bed.job()
        bed.fill(2_000)
        train(self.path, "--until-end").communicate(timeout=240)
        self.job = Job.load(self.path)
        self._topic = str(self.job.topic("rounds").name)
        settings = {**self.job.kafka_consumer(), "bootstrap.servers": bed.bootstrap}
        self._log = list(round_logs(settings, self._topic))[-1].first
        self._producer = Producer({"bootstrap.servers": bed.bootstrap, "linger.ms": 5})
        self._version = self._log.version

    def publish(self, *created_ms: int) -> None:
        for at_ms in created_ms:
            self._version += 1
            log: RoundLog = replace(self._log, version=self._version, created_ms=at_ms)
            for message in messages(log):
                self._producer.produce(self._topic, message.value, key=message.key)
        assert self._producer.flush(60) == 0


def page(run: Run) -> Sides:
    driver, folder, history = run.stack.enter_context(browser()), run.folder, History(Bed(run.kafka))
    now_ms = int(time.time() * 1000)
    history.publish(*(now_ms - HOUR_MS + at * HOUR_MS // run.rows for at in range(run.rows)))
    (folder / "rival.py").write_text(RIVAL)
    mine = run.stack.enter_context(our_server("ui", str(history.path), stderr=subprocess.DEVNULL))
    rivals = rival_server(str(folder / "rival.py"), "PORT", str(run.rows), stderr=subprocess.DEVNULL)
    rival = run.stack.enter_context(rivals)
    open_s, moved_s = opened(driver, f"{mine.url}overview?job={history.job.name}", LAST_THROUGHPUT), list[float]()
    for _ in range(5):
        idle(1.0)
        before = driver.execute_script(LAST_THROUGHPUT)
        history.publish(int(time.time() * 1000))
        moved = lambda before=before: driver.execute_script(LAST_THROUGHPUT) != before  # noqa: E731
        moved_s.append(seconds_until(moved, time.perf_counter()))
    cpu_ms = cpu_ms_a_second(mine, run.seconds)
    its_open_s = opened(driver, rival.url, RIVAL_DRAWN)
    return {
        "open": open_s, "NiceGUI, open": its_open_s, "moves": max(moved_s), "server": cpu_ms,
        "NiceGUI, server": cpu_ms_a_second(rival, run.seconds),
    }  # fmt: skip


def jobs(run: Run) -> Sides:
    """Three jobs for a hundred points of the page: 30."""
    driver, bed = run.stack.enter_context(browser()), Bed(run.kafka)
    paths = [bed.job() for _ in range(max(2, 3 * run.rows // 100))]
    all_jobs = [Job.load(path) for path in paths]
    for job in all_jobs:
        ServedModel(bed.bootstrap, job.name).put()
    with our_server("ui", *map(str, paths), stderr=subprocess.DEVNULL) as ours:
        driver.get(ours.url)
        last = f"return document.body.innerText.includes({json.dumps(all_jobs[-1].name)})"
        seconds_until(lambda: driver.execute_script(last), time.perf_counter())
        idle(5.0)  # every job has been looked at
        cpu = cpu_ms_a_second(ours, max(5.0, run.seconds))
    with ExitStack() as stack:
        job_statuses = [stack.enter_context(JobStatus(job)) for job in all_jobs]
        for each in job_statuses:
            each.look()
        begun = time.process_time()
        for each in job_statuses:
            each.look()
        looked_ms = 1000 * (time.process_time() - begun)
    return {"server of jobs": cpu, "two looks a second": 2 * looked_ms}


@bench(
    "ui",
    {
        (page,): [
            Line("page of an hour is open", "open", "NiceGUI, open", OPEN_S, LIMIT, unit="s"),
            Line("last point moves after a publication", "moves", MOVES_S, MOVES_S, LIMIT, unit="s"),
            Line("server, one page open", "server", "NiceGUI, server", 1.0, MOST),
        ],
        (jobs,): [Line("jobs page", "server of jobs", "two looks a second", 2.0, MOST)],
    },
    once, "CPU ms/s", {"seconds": 4.0, "rows": 60}, ("chromium", "chromedriver"), seconds=40.0, rows=1_000,
)  # fmt: skip
def ui(run: Run, sides: Callable[[Run], Sides]) -> Sides:
    """The page in a browser: an hour of publications (`--rows`), and 30 jobs; against NiceGUI's own charts."""
    return sides(run)
