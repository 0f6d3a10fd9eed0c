"""The pages in a real browser."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from streamtrain.ui import pages
from streamtrain.ui.pages import model, overview
from tests.e2e.harness import LiveJob
from tests.ui.test_server import more, trained

pytestmark = pytest.mark.full
ROUTES = [page.ROUTE for page in pages.in_order()]
LOG_LOSS = "return document.querySelector('[data-chart=progressive_loss] .st-last')?.textContent"
PLOTS = "return [...document.querySelectorAll('[data-chart]')].filter((one) => !one.hidden).map((one) => one.ariaLabel)"
TAB, ENTER = "\ue004", "\ue007"  # WebDriver's
PNG = b"\x89PNG\r\n\x1a\n"
HIDDEN = "return document.querySelector('[data-chart={}]')?.hidden"


def text_of(browser: Any, selector: str) -> str:
    return str(browser.execute_script(f"return document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


def take_hosts(browser: Any) -> set[str]:
    """The hosts of all requests since the last call."""
    found = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent" and "://" in (url := message["params"]["request"]["url"]):
            found.add(url.split("/")[2])
    return found


def no_errors(browser: Any) -> None:
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def refused_by_policy(browser: Any) -> list[str]:
    """Returns the directives by which the page's content security policy blocks another server, sorted by name."""
    return sorted(browser.execute_async_script("""
        const seen = [], done = arguments[arguments.length - 1], other = "http://127.0.0.1:1/";
        document.addEventListener("securitypolicyviolation", (found) => {
            if (seen.push(found.effectiveDirective) === 4) done(seen);
        });
        fetch(other).catch(() => null);
        for (const name of ["img", "script", "iframe"]) {
            const made = document.createElement(name);
            made.src = other;
            document.body.append(made);
        }
    """))


def test_a_job_is_seen_to_learn(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    """With a token, of which neither the browser's address nor the server's log has anything."""
    job = trained(kafka, tmp_path)
    (tmp_path / "token").write_text(token := "s3cret+/6chars==")
    page = served(str(job.path), "--token-file", str(tmp_path / "token"))
    browser.get(f"{page.url}overview?job={job.name}&token={token}")
    assert browser.current_url == f"{page.url}overview?job={job.name}"
    browser.get(page.url)
    wait_for(lambda: job.name in text_of(browser, "main") and "ended" in text_of(browser, "main"))
    manifest = job.newest().manifest
    to_the_job = f"document.querySelector('a[href*=\"job={job.name}\"]').click()"
    assert f"{manifest.rows_seen:,}" in text_of(browser, "main")
    browser.execute_script(to_the_job)  # at once: the table is written anew every second
    wait_for(lambda: f"{manifest.version}, " in text_of(browser, ".st-tiles"))
    assert f"{manifest.rows_seen:,} rows" in text_of(browser, ".st-tiles")
    total = manifest.metrics["total"]["log_loss"]
    text = wait_for(lambda: browser.execute_script(LOG_LOSS))
    assert f"{total:.4g}".rstrip("0") in text
    assert browser.execute_script(HIDDEN.format("happened")) is False
    # a chart without points is not shown
    assert browser.execute_script(HIDDEN.format("lag")) in (True, False)

    more(job, 1000, seed=1)
    newest = job.newest().manifest
    wait_for(lambda: f"{newest.rows_seen:,} rows" in text_of(browser, ".st-tiles"))
    wait_for(lambda: f"{newest.metrics['total']['log_loss']:.4g}".rstrip("0") in browser.execute_script(LOG_LOSS))
    browser.find_element("link text", "over rows").click()
    wait_for(lambda: browser.execute_script(LOG_LOSS))
    assert "x=rows" in browser.current_url
    assert take_hosts(browser) == {page.url.split("/")[2]}  # nothing from elsewhere
    no_errors(browser)
    assert refused_by_policy(browser) == ["connect-src", "frame-src", "img-src", "script-src-elem"]
    assert all("s3cret" not in log.read_text() for log in tmp_path.glob("ui.*.log"))


def test_it_fits(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    """Nothing sticks out, and text can be read on what is behind it."""
    job = trained(kafka, tmp_path, rows=600)
    page = served(str(job.path))
    for scheme, width in product(("light", "dark"), (400, 1280)):
        fits(browser, page, job, scheme, width)


def settled(browser: Any) -> bool:
    """Waits for texts that the page reads in the background."""
    text = text_of(browser, "main")
    there = "return document.querySelector('main dl, main table, main .st-empty') !== null"
    return "…" not in text and browser.execute_script(there)


def fits(browser: Any, page: Any, job: LiveJob, scheme: str, width: int) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    for path in (f"{route[1:]}?job={job.name}" if route != "/" else "" for route in ROUTES):
        browser.get(page.url + path)
        wait_for(lambda path=path: job.name in text_of(browser, "main") and (not path or settled(browser)))
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), path
        colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        dark = [sum(map(int, found[4:-1].split(","))) < 384 for found in browser.execute_script(colours)]
        assert dark == ([False, True] if scheme == "dark" else [True, False]), path
    no_errors(browser)


@pytest.mark.parametrize("route", [overview.ROUTE, model.ROUTE])
def test_pictures_are_taken_by_the_keyboard(kafka: Any, tmp_path: Path, served: Any, browser: Any, route: str) -> None:
    job = trained(kafka, tmp_path)
    page = served(str(job.path))
    downloads = {"behavior": "allow", "downloadPath": str(tmp_path / "taken")}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", downloads)
    browser.get(f"{page.url}{route[1:]}?job={job.name}")
    wait_for(lambda: settled(browser) and len(browser.execute_script(PLOTS)) > 2)
    reached: list[str] = []
    while (focused := pressed(browser, TAB)).tag_name != "body":  # which is behind the last
        reached.append(focused.accessible_name)
        if reached[-1].startswith("PNG"):
            focused.send_keys(ENTER)
    plots = browser.execute_script(PLOTS)
    assert [name for name in reached if name.startswith("PNG")] == [f"PNG of {plot}" for plot in plots]
    assert len(set(reached)) == len(reached)
    files = wait_for(lambda: (found := list((tmp_path / "taken").glob("*.png"))) and len(found) == len(plots) and found)
    for file in files:
        assert file.name.startswith(f"{job.name}.") and wait_for(file.read_bytes).startswith(PNG), file
    no_errors(browser)


def pressed(browser: Any, key: str) -> Any:
    browser.switch_to.active_element.send_keys(key)
    return browser.switch_to.active_element


def test_a_kafka_that_goes_and_comes_back(private_kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    broker = private_kafka(data=tmp_path / "kafka")

    class Own:
        bootstrap = broker.bootstrap
        fresh_name = staticmethod(lambda prefix: f"{prefix}-own")

    job: LiveJob = trained(Own, tmp_path, rows=600)
    page = served(str(job.path))
    browser.get(f"{page.url}overview?job={job.name}")
    wait_for(lambda: "ended" in text_of(browser, ".st-tiles"))
    broker.kill()
    wait_for(lambda: "does not answer" in text_of(browser, ".st-error"))
    tiles = text_of(browser, ".st-tiles")
    assert "away" in tiles and "600 rows" in tiles  # what was is still there
    broker.start()
    wait_for(lambda: not text_of(browser, ".st-error"))
    wait_for(lambda: "ended" in text_of(browser, ".st-tiles"))
