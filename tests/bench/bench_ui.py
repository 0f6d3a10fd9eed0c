"""`streamtrain ui` in a browser: how soon a page of an hour is there, how soon it shows a publication, what it costs.

The job has 1,000 publications, spread over the newest hour. The rival of the page has as many charts as NiceGUI has
them, their points sent with each change; of the jobs' page, two looks a second at every job; of the delay, the limit.
Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import psutil
from confluent_kafka import Producer
from served_model import ServedModel
from workbench import Bed, figure, kafka_at, train

from streamtrain.clients.standing import JobStanding
from streamtrain.job import Job
from streamtrain.kafka.round_logs import round_logs
from streamtrain.topics.rounds import RoundLog, messages

FIGURES = 4  # lines of a whole run
SMOKE = ["--seconds", "2", "--points", "60", "--jobs", "2"]

OPEN_S, MOVES_S = 2.0, 2.0
HOUR_MS = 3_600_000
CHARTS = 8  # that such a job has points for, with its own
SHOWN = "return document.querySelector('[data-chart=throughput] .st-last')?.textContent ?? ''"
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


class Server:
    """A process that serves pages."""

    def __init__(self, process: Any, url: str) -> None:
        self.url, self._process = url, psutil.Process(process.pid)

    def cpu_ms_a_second(self, seconds: float) -> float:
        before, begun = self._process.cpu_times(), time.perf_counter()
        idle(seconds)
        after = self._process.cpu_times()
        spent_s = after.user + after.system - before.user - before.system
        return max(0.1, 1000 * spent_s / (time.perf_counter() - begun))


@contextmanager
def served(*arguments: str) -> Iterator[Server]:
    command = [str(Path(sys.executable).parent / "streamtrain"), "ui", *arguments, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process, json.loads(process.stdout.readline())["url"])
        finally:
            process.kill()


@contextmanager
def rival(folder: Path, points: int) -> Iterator[Server]:
    (folder / "rival.py").write_text(RIVAL)
    port = 17_000 + os.getpid() % 5_000
    command = [sys.executable, str(folder / "rival.py"), str(port), str(points)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Server(process, f"http://127.0.0.1:{port}/")
        finally:
            process.kill()


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


def opened(driver: Any, server: Server, path: str, drawn: str) -> float:
    """Seconds from asking for a page to its points: the second time, with scripts that the browser has."""
    found = 0.0
    for _ in range(2):
        while True:
            try:
                begun = time.perf_counter()
                driver.get(server.url + path)
                found = seconds_until(lambda: driver.execute_script(drawn), begun)
                break
            except Exception as error:  # a server that is not up yet
                if "ERR_CONNECTION_REFUSED" not in str(error):
                    raise
                time.sleep(0.2)
    return found


class History:
    """Publications of a job, told by copies of the log that a real run has left."""

    def __init__(self, bed: Bed) -> None:
        self.path = bed.job()
        bed.fill(2_000)
        process = train(self.path, "--until-end")
        process.communicate(timeout=240)
        self.job = Job.load(self.path)
        self._topic = str(self.job.topic("rounds").name)
        settings = {**self.job.kafka_consumer(), "bootstrap.servers": bed.bootstrap}
        self._log = list(round_logs(settings, self._topic))[-1]
        self._producer = Producer({"bootstrap.servers": bed.bootstrap, "linger.ms": 5})
        self._version = self._log.version

    def publish(self, created_ms: int) -> None:
        self._version += 1
        log: RoundLog = replace(self._log, version=self._version, created_ms=created_ms)
        for message in messages(log):
            self._producer.produce(self._topic, message.value, key=message.key)

    def sent(self) -> None:
        assert self._producer.flush(60) == 0


def page(bed: Bed, folder: Path, driver: Any, seconds: float, points: int) -> None:
    history, now_ms = History(bed), int(time.time() * 1000)
    for at in range(points):
        history.publish(now_ms - HOUR_MS + at * HOUR_MS // points)
    history.sent()
    with served(str(history.path)) as ours, rival(folder, points) as theirs:
        path = f"overview?job={history.job.name}"
        mine = opened(driver, ours, path, SHOWN)
        moved = []
        for _ in range(5):
            idle(1.0)
            shown = driver.execute_script(SHOWN)
            history.publish(int(time.time() * 1000))
            history.sent()
            begun = time.perf_counter()
            moved.append(seconds_until(lambda shown=shown: driver.execute_script(SHOWN) != shown, begun))
        cpu = ours.cpu_ms_a_second(seconds)
        other = opened(driver, theirs, "", RIVAL_DRAWN)
        other_cpu = theirs.cpu_ms_a_second(seconds)
    figure("ui page of an hour is open", mine, other, OPEN_S, "s, at most")
    figure("ui last point moves after a publication", max(moved), MOVES_S, MOVES_S, "s, at most")
    figure("ui server, one page open", cpu, other_cpu, 1.0, "CPU ms/s, times the rival's at most")


def jobs(bed: Bed, driver: Any, seconds: float, count: int) -> None:
    made = [Job.load(bed.job()) for _ in range(count)]
    for job in made:
        ServedModel(bed.bootstrap, job.name).put()
    paths = [str(bed.folder / f"{job.name}.toml") for job in made]
    with served(*paths) as ours:
        driver.get(ours.url)
        last = f"return document.body.innerText.includes({json.dumps(made[-1].name)})"
        seconds_until(lambda: driver.execute_script(last), time.perf_counter())
        idle(5.0)  # every job has been looked at
        cpu = ours.cpu_ms_a_second(max(5.0, seconds))
    with ExitStack() as opened_:
        standings = [opened_.enter_context(JobStanding(job)) for job in made]
        for each in standings:
            each.look()
        begun = time.process_time()
        for each in standings:
            each.look()
        looked = 1000 * (time.process_time() - begun)
    figure(f"ui jobs page, {count} jobs", cpu, 2 * looked, 2.0, "CPU ms/s, times two looks a second at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time that is measured")
    parser.add_argument("--points", type=int, default=1_000)
    parser.add_argument("--jobs", type=int, default=30)
    given = parser.parse_args()
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        print(json.dumps({"bench": "ui", "skipped": "no chromium and chromedriver here"}))
        return
    with kafka_at(os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP")) as bootstrap, browser() as driver:
        bed = Bed(bootstrap)
        with tempfile.TemporaryDirectory() as folder:
            page(bed, Path(folder), driver, given.seconds, given.points)
        jobs(bed, driver, given.seconds, given.jobs)


if __name__ == "__main__":
    main()
