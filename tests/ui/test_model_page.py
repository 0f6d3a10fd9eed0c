"""The model page over a real Kafka: its numbers are the snapshots'."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trained_job import TrainedJob
from waiting import wait_for

from streamtrain.compute import snapshot
from streamtrain.ui import examining
from tests.e2e.harness import LiveJob
from tests.ui.conftest import Shown
from tests.ui.test_browser import no_errors, text_of
from tests.ui.test_server import more, trained


def norms(job: LiveJob, version: int) -> dict[str, tuple[float, float]]:
    """Norm and mean magnitude of each block of parameters."""
    with job.topic() as topic:
        arrays = snapshot.decode(topic.version(version).model)
    wide = {name: array.astype(np.float64) for name, array in arrays.items() if array.dtype == np.float32}
    return {name: (float(np.linalg.norm(array)), float(abs(array).mean())) for name, array in wide.items()}


def test_what_is_drawn_is_what_the_snapshots_hold(trained_job: TrainedJob, shown: Any) -> None:
    job = trained_job
    with job.topic() as topic:
        versions = [located.manifest.version for located in topic.list()]
    assert len(versions) >= 4
    page = shown(job.job)

    def whole() -> Any:
        charts = page.document("model", job.name)["charts"]
        lines = charts["norm"]["lines"]
        return charts if lines and [version for version, _ in lines[0]["points"]] == versions else None

    charts = wait_for(whole)
    drawn = {(line["name"], version): value for line in charts["norm"]["lines"] for version, value in line["points"]}
    sizes = {(line["name"], at): value for line in charts["magnitude"]["lines"] for at, value in line["points"]}
    for version in versions:
        for name, (norm, magnitude) in norms(job, version).items():
            assert drawn[name, version] == pytest.approx(norm, rel=1e-9), (name, version)
            assert sizes[name, version] == pytest.approx(magnitude, rel=1e-9), (name, version)
    ratios = {line["name"]: dict(line["points"]) for line in charts["ratio"]["lines"]}
    assert ratios.keys() == norms(job, versions[-1]).keys()
    of_pairs = {after: ratio(job, before, after) for before, after in pairwise(versions)}
    moved = {version: found for version, found in of_pairs.items() if found is not None}
    assert len(moved) >= 3 and ratios["dense0.weight"] == pytest.approx(moved, rel=1e-6)
    assert charts["ratio"]["across"] == -3

    # two side by side: the outlines hold all values
    pair = page.document("model", job.name, snapshot=versions[-1], against=versions[0])["charts"]["block0"]
    assert [line["name"] for line in pair["lines"]] == [f"version {versions[-1]}", f"version {versions[0]}"]
    for line in pair["lines"]:
        x, density = np.array(line["points"][1:]).T
        assert (density[:-1] * np.diff(x)).sum() == pytest.approx(1)
    status, csv = page.get(f"/api/model?job={job.name}&csv=norm")
    assert status == 200 and csv.splitlines()[0].startswith("version,time_ms,dense0.weight")
    assert [int(line.split(",")[0]) for line in csv.splitlines()[1:]] == versions
    assert page.get(f"/api/model?job={job.name}&csv=../x")[0] == 404 and page.get("/api/model?job=no")[0] == 404


def ratio(job: LiveJob, before: int, after: int) -> float | None:
    with job.topic() as topic:
        stored = [topic.version(version) for version in (before, after)]
    one, other = (snapshot.decode(each.model)["dense0.weight"].astype(np.float64) for each in stored)
    updates = [int(snapshot.decode(each.trainer or b"")["optimizer.steps"][0]) for each in stored]
    of_one = abs(other - one).mean() / abs(one).mean() / np.sqrt(max(1, updates[1] - updates[0]))
    return float(np.log10(of_one)) if of_one > 0 else None


@pytest.mark.full
def test_a_network_and_its_blocks_are_seen(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    job = trained(kafka, tmp_path, rows=600)
    for seed in (1, 2):
        more(job, 600, seed)
    version = job.newest().manifest.version
    page = served(str(job.path))
    browser.get(f"{page.url}model?job={job.name}")
    wait_for(lambda: f"Blocks of version {version}" in text_of(browser, "main"))
    picture = browser.execute_script("return document.querySelector('.st-network svg').getAttribute('aria-label')")
    assert "dense0" in picture and "output" in picture
    table = text_of(browser, "main")
    for name, (norm, magnitude) in norms(job, version).items():
        assert name in table and f"{norm:.4g}" in table and f"{magnitude:.4g}" in table, name
    hidden = "return document.querySelector('[data-chart={}]').hidden"
    wait_for(lambda: browser.execute_script(hidden.format("block0")) is False)
    wait_for(lambda: browser.execute_script(hidden.format("ratio")) is False)
    shown = browser.execute_script("return document.querySelector('[data-chart=norm] .st-last').textContent")
    assert f"{norms(job, version)['dense0.weight'][0]:.4g}".rstrip("0") in shown

    # what is chosen stands in the address
    (choice,) = wait_for(lambda: browser.find_elements("css selector", "select[name=against]"))
    older = [each.get_attribute("value") for each in choice.find_elements("tag name", "option")][-1]
    browser.execute_script("arguments[0].value = arguments[1]", choice, older)
    browser.find_element("css selector", ".st-form button").click()
    wait_for(lambda: f"The same blocks in version {older}" in text_of(browser, "main"))
    assert f"against={older}" in browser.current_url

    # a snapshot that comes is there by itself
    browser.get(f"{page.url}model?job={job.name}")
    more(job, 600, seed=5)
    newest = job.newest().manifest.version
    wait_for(lambda: f"Blocks of version {newest}" in text_of(browser, "main"))
    no_errors(browser)


def test_a_snapshot_that_is_too_large_is_not_fetched(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examining, "LARGEST_BYTES", 1000)
    job = trained(kafka, tmp_path, rows=300)
    version = job.newest().manifest.version
    with closing(Shown(job.job.kafka, [job.job])) as cluster:
        following = cluster.of(job.name)
        assert following is not None
        looking = cluster.beside(following, examining.Examining)
        looking.watched()
        assert "expected at most 1,000 bytes" in wait_for(lambda: looking.refusal(version))
        wait_for(lambda: looking.left == 0)
        assert looking.snapshots.all == [] and not looking.error
        # and one that is there is looked into as soon as it may be
        monkeypatch.setattr(examining, "LARGEST_BYTES", 10**9)
        more(job, 300, seed=1)
        newest = job.newest().manifest.version

        def is_there() -> Any:
            looking.watched()
            return looking.snapshots.of(newest)

        assert wait_for(is_there).digest == job.newest().digest
