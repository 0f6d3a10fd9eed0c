"""`streamtrain ui` as a user starts it, and a real browser before it."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import commands

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@dataclass(frozen=True)
class Page:
    """A server that runs, and its address."""

    process: Any
    url: str

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        """The status and the body."""
        asked = urllib.request.Request(self.url.rstrip("/") + path, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def points(self, job: str, **asked: str) -> Any:
        more = "".join(f"&{name}={value}" for name, value in asked.items())
        status, body = self.get(f"/api/points?job={job}{more}")
        assert status == 200, body
        return json.loads(body)


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
