"""The pages of models, data and lineages over a real Kafka: their numbers are the snapshots', their columns those that
were produced; dead letters are opened, and `verify` run from the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trained_job import TrainedJob
from waiting import wait_for

from streamtrain.analysis.summary import Summary
from streamtrain.checks.verify import verify as check_topics
from streamtrain.clients.predictions import read_predictions
from streamtrain.compute import snapshot
from streamtrain.kafka.round_logs import round_logs, round_logs_from
from streamtrain.topics.predictions import DIGEST_HEADER, VERSION_HEADER
from streamtrain.ui import examining, sampling
from streamtrain.ui.data_tables import dump
from streamtrain.ui.lineage_tables import merged
from streamtrain.ui.provenance import Named, named
from streamtrain.ui.sampling import Sample, sampled
from streamtrain.ui.verifying import Verifying
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.ui.conftest import IsolatedCluster
from tests.ui.test_browser import no_errors, text_of
from tests.ui.test_server import more, trained


def norms(job: LiveJob, version: int) -> dict[str, tuple[float, float]]:
    """Norm and mean magnitude of each block of parameters."""
    with job.topic() as topic:
        arrays = snapshot.decode(topic.version(version).model)
    wide = {name: array.astype(np.float64) for name, array in arrays.items() if array.dtype == np.float32}
    return {name: (float(np.linalg.norm(array)), float(abs(array).mean())) for name, array in wide.items()}


def test_what_is_drawn_is_what_the_snapshots_hold(trained_job: TrainedJob, page_of: Any) -> None:
    job = trained_job
    with job.topic() as topic:
        versions = [located.manifest.version for located in topic.list()]
    assert len(versions) >= 4
    page = page_of(job.job)

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
    text = browser.execute_script("return document.querySelector('[data-chart=norm] .st-last').textContent")
    assert f"{norms(job, version)['dense0.weight'][0]:.4g}".rstrip("0") in text

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
    with closing(IsolatedCluster(job.job.kafka, [job.job])) as cluster:
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


FORMAT = {"format": "json", "partitions": 2, "max_dead_letter_share": 0.5}


def shifted(count: int, seed: int, by: float, colour: str = "") -> Iterator[dict[str, Any]]:
    for row in rows(count, seed):
        yield {**row, "x1": row["x1"] + by, "colour": colour or row["colour"]}


def encoded(row_dicts: Any) -> list[bytes]:
    return [json.dumps(row).encode() for row in row_dicts]


@contextmanager
def sample_of(job: LiveJob) -> Iterator[Sample]:
    with closing(IsolatedCluster(job.job.kafka, [job.job])) as cluster:
        following = cluster.of(job.name)
        assert following is not None and following.ready.wait(60)
        yield sampled(job.job, following)


def test_both_ends_and_nothing_between(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", 400)
    monkeypatch.setattr(sampling, "NAMED_ROWS", 80)
    job = LiveJob(kafka, tmp_path, **FORMAT)
    oldest, newest = list(shifted(400, 1, 0)), list(shifted(400, 2, 50, "black"))
    job.produce_values(encoded([*oldest, *shifted(300, 3, 1e6), *newest]))
    with sample_of(job) as sample:
        assert (sample.first.rows, sample.last.rows, sample.halved) == (400, 400, False)
        assert sample.first.spans == [(0, 200), (0, 200)] and sample.last.spans == [(350, 550), (350, 550)]
        for window, end_rows in ((sample.first, oldest), (sample.last, newest)):
            of = window.columns["x1"]
            values = np.array([row["x1"] for row in end_rows], np.float32).astype(np.float64)
            assert of["mean"] == pytest.approx(values.mean()) and of["deviation"] == pytest.approx(values.std())
        first, last = sample.first.values["colour"], sample.last.values["colour"]
        reds = sum(row["colour"] == "red" for row in oldest[: first.rows])
        assert dict(first.counts)["red"] == reds and last.counts == [("black", last.rows)] and last.rows == 80
        summaries = [Summary(job.job), Summary(job.job)]
        for summary, end_rows in zip(summaries, (oldest, newest), strict=True):
            list(summary.add(encoded(end_rows)))
        expected = summaries[1].document(summaries[0])["columns"]
        for name, column in sample.last.columns.items():
            assert column["drift"] == pytest.approx(expected.pop(name)["drift"]), name
        assert not expected
        assert sample.last.columns["colour"]["drift"] > 1 > 0.1 > sample.last.columns["x2"]["drift"]


def test_less_than_both_ends_is_halved(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, **FORMAT)
    job.produce_values(encoded(rows(101)))
    with sample_of(job) as sample:
        assert sample.halved and sample.first.rows + sample.last.rows == 101
        assert [low for low, _ in sample.last.spans] == [end for _, end in sample.first.spans]


def test_records_of_many_rows_are_fewer(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROWS", 200)
    job = LiveJob(kafka, tmp_path, **FORMAT)
    row_dicts = list(rows(2000))
    job.produce_values([json.dumps(row_dicts[at : at + 50]).encode() for at in range(0, 2000, 50)])
    with sample_of(job) as sample:
        assert (sample.first.rows, sample.last.rows) == (200, 200)
        assert sample.first.spans == [(0, 2), (0, 2)] and sample.last.spans == [(18, 20), (18, 20)]


def test_what_is_missing_and_what_is_clipped(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, **FORMAT)
    job.produce_values(encoded(rows(2000)))
    threaded.rows_after(job.path)
    far = [{**row, "x3": 1e5} if at < 100 else {**row, "colour": None} if at < 150 else row
           for at, row in enumerate(rows(2000, seed=1))]  # fmt: skip
    job.produce_values(encoded(far))
    with sample_of(job) as sample:
        assert sample.clip_version == job.newest().manifest.version and sample.halved
        assert sample.last.clipped["x3"] == 100 / 2000 and sample.first.clipped["x3"] == 0
        colour = sample.last.columns["colour"]
        assert (colour["missing"], colour["unusable"], colour["rows"]) == (50, 0, 2000)


@pytest.mark.full
def test_the_page_says_so_and_opens_a_letter(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    job = LiveJob(kafka, tmp_path, **FORMAT)
    page = served(str(job.path))
    browser.get(f"{page.url}data?job={job.name}")
    wait_for(lambda: "There is no dead letter" in text_of(browser, "main"))
    bad = json.dumps({**next(rows(1)), "x2": "bad <b>"}).encode()
    job.produce_values([*encoded(rows(500)), bad, b"\x00\xff no record"])
    threaded.rows_after(job.path)
    browser.get(f"{page.url}data?job={job.name}")
    wait_for(lambda: browser.execute_script("return document.querySelectorAll('main table').length") >= 3)
    columns = {row[0]: row for row in table_of(browser, "Columns as records give them")}
    with sample_of(job) as sample:
        assert columns["x1"][3] == f"{sample.last.columns['x1']['mean']:.4g}"
        assert columns["colour"][1] == "text" and columns["x2"][9] != "0"  # one of them is unusable
    letters = table_of(browser, "Dead letters")
    assert len(letters) == 2 and {row[4] for row in letters} == {"$.x2", "$"}
    (place,) = (row[0] for row in letters if row[4] == "$.x2")
    browser.find_element("link text", place).click()
    wait_for(lambda: "Dead letter " + place in text_of(browser, "main"))
    assert f"letter={place.replace('@', '%40')}" in browser.current_url
    assert text_of(browser, ".st-bytes").split() == dump(bad).split()
    why = table_of(browser, "Why")
    assert why[0][1] == "$.x2" and "expected number" in why[0][2]
    no_errors(browser)


def test_bytes_are_shown_as_they_are() -> None:
    text = dump(b"abc\x00\xff" + b"<" * 14)
    first, second = text.splitlines()
    assert first.startswith("00000  61 62 63 00 ff 3c") and first.endswith("abc..<<<<<<<<<<<")
    assert second.split() == ["00010", "3c", "3c", "3c", "<<<"] and dump(b"") == ""


DIGEST = "5f" * 32


@pytest.mark.parametrize("text", [
    f"streamtrain-version: 12\nstreamtrain-digest: {DIGEST}",
    f"{DIGEST_HEADER}={DIGEST},{VERSION_HEADER}=12,streamtrain-partition=3",
    json.dumps({VERSION_HEADER: "12", DIGEST_HEADER: DIGEST}),
    str([(VERSION_HEADER, b"12"), (DIGEST_HEADER, DIGEST.encode())]),
    json.dumps({"prediction": {"prediction": 0.5}, "version": 12, "digest": DIGEST, "request_offset": 7}),
])  # fmt: skip
def test_headers_are_read_as_they_come(text: str) -> None:
    assert named(text) == Named(12, DIGEST)


def test_headers_that_name_less() -> None:
    assert named("streamtrain-version: 12") == Named(12, None)
    assert named(f"streamtrain-digest: {DIGEST}") is None and named("version: twelve") is None
    assert named("conversion: 12") is None and named("version: " + "1" * 19) is None


def test_round_logs_from_the_first_that_is_requested(kafka: Any, tmp_path: Path) -> None:
    """Ranges of a log that follow one another are one."""
    job = trained(kafka, tmp_path, rows=1000)
    settings, name = {"bootstrap.servers": job.bootstrap}, str(job.job.topic("rounds").name)
    logs, newest = list(round_logs(settings, name)), job.newest().manifest
    for log in logs:
        found = merged(log)
        assert sum(each[4] for each in found) == log.rows_trained  # records, then trained
        assert len({each[0] for each in found}) == len(found)  # nothing is left out here
    ends = {each[0]: each[2] for log in logs for each in merged(log)}
    assert ends == {number: tuple(at) for number, at in enumerate(newest.positions.partitions)}

    threaded.rows_after(job.path, fresh=True)
    logs = list(round_logs(settings, name))
    assert len({log.lineage for log in logs}) == 2
    for at, log in enumerate(logs):
        found_logs = list(round_logs_from(settings, name, lambda part, log=log: part.version >= log.version))
        assert [each.digest for each in found_logs] == [each.digest for each in logs[at:]]
    last = logs[-1]
    first = next(log for log in logs if log.lineage == last.lineage)
    found_log = next(round_logs_from(settings, name, lambda part: part.lineage == last.lineage))
    assert found_log.version == first.version
    assert list(round_logs_from(settings, name, lambda part: part.version > last.version)) == []


def table_of(browser: Any, caption: str) -> list[list[str]]:
    """The cells of the table whose caption begins so."""
    (table,) = browser.find_elements("xpath", f"//table[starts-with(caption, '{caption}')]")
    rows = table.find_elements("css selector", "tbody tr")
    return [[cell.text for cell in row.find_elements("css selector", "th, td")] for row in rows]


@pytest.mark.full
def test_a_prediction_is_traced(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    job = trained(kafka, tmp_path)
    (tmp_path / "request.jsonl").write_text('{"x1": 1, "x2": 2, "x3": 3, "x4": 4, "colour": "red"}\n')
    produce = ("produce", "--input", str(tmp_path / "request.jsonl"), "--to", "requests")
    assert [job.command(*each).returncode for each in (produce, ("predict", "--until-end"))] == [0, 0]
    (answer,) = read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)
    page = served(str(job.path))
    headers = f"{VERSION_HEADER}: {answer.version}\n{DIGEST_HEADER}: {answer.digest}"
    browser.get(f"{page.url}lineage?job={job.name}")
    area = browser.find_element("css selector", "textarea")
    area.send_keys(headers)
    browser.find_element("xpath", "//button[. = 'Trace']").click()
    wait_for(lambda: f"The prediction was made by version {answer.version}" in text_of(browser, "main"))
    manifest = job.newest().manifest
    text = text_of(browser, "main")
    assert str(answer.digest) in text and f"{manifest.counts.trained:,} rows trained" in text
    seen = table_of(browser, "What its lineage had read")
    assert seen == [[str(at), "0", f"{place.offset:,}"] for at, place in enumerate(manifest.positions.partitions)]
    assert f"What version {manifest.version} added" in text and "run" in text

    browser.get(f"{page.url}lineage?job={job.name}&snapshot=1")
    wait_for(lambda: "It begins its lineage" in text_of(browser, "main"))
    browser.find_element("css selector", "summary").click()
    wait_for(lambda: "train.batch_rows" in text_of(browser, "main"))
    assert "bootstrap" not in text_of(browser, "main")
    no_errors(browser)


@pytest.mark.full
def test_what_the_topic_keeps_no_more_comes_from_its_log(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    job = trained(kafka, tmp_path, rows=600, keep=2)
    for seed in (1, 2, 3):
        more(job, 300, seed)
    with job.topic() as topic:
        assert topic.list()[0].manifest.version > 3
    page = served(str(job.path))
    browser.get(f"{page.url}lineage?job={job.name}&snapshot=3")
    wait_for(lambda: "its round log tells this" in text_of(browser, "main"))
    logs = round_logs({"bootstrap.servers": job.bootstrap}, str(job.job.topic("rounds").name))
    log = next(log for log in logs if log.version == 3)
    assert log.digest.hex() in text_of(browser, "main") and "What version 3 added" in text_of(browser, "main")


@pytest.mark.full
def test_verify_is_run_from_the_page(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
    job = trained(kafka, tmp_path)
    page = served(str(job.path))
    browser.get(f"{page.url}lineage?job={job.name}")
    verify(browser, "Verify, records by their log", "whole records not (--fast)")
    verify(browser, "Verify every record", "2000 records, 2000 rows read again")
    assert "every check passed" in text_of(browser, "main") and "2,000 rows trained" in text_of(browser, "main")

    job.produce_messages([{"value": b"no dead letter of ours"}], str(job.job.topic("dead-letters").name))
    verify(browser, "Verify, records by their log", "A CHECK FAILED")
    assert {row[1] for row in table_of(browser, "20") if row[0] == "dead letters"} == {"FAILED"}
    no_errors(browser)


def verify(browser: Any, button: str, then: str) -> None:
    found = wait_for(lambda: browser.find_elements("xpath", f"//button[contains(., '{button}')]"))
    found[0].click()
    wait_for(lambda: then in text_of(browser, "main"))


def test_a_verification_can_be_stopped_and_says_what_is_wrong(trained_job: TrainedJob) -> None:
    job = trained_job
    read: list[tuple[str, int]] = []
    report = check_topics(job.job, on_read=lambda *count: read.append(count))
    assert report.ok
    by_topic = {name: sum(count for topic, count in read if topic == name) for name, _ in read}
    records = sum(end - begin for begin, end in job.admin.spans(job.records) or [])
    assert by_topic[job.records] == records > 0 and by_topic[str(job.job.topic("rounds").name)] > 0

    with closing(IsolatedCluster(job.job.kafka, [job.job])) as cluster:
        following = cluster.of(job.name)
        assert following is not None
        verifying = cluster.beside(following, Verifying)
        verifying.start(fast=False)
        verifying.stop()
        result = wait_for(lambda: verifying.result)
        assert result.report is None and "stopped" in result.error and not verifying.running
