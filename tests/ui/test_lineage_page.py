"""The lineage page over a real Kafka: the records of a snapshot by the topics, and `verify` run from the page."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from trained_job import TrainedJob
from waiting import wait_for

from streamtrain.checks.verify import verify as check_topics
from streamtrain.clients.predictions import read_predictions
from streamtrain.kafka.round_logs import round_logs, round_logs_from
from streamtrain.topics.predictions import DIGEST_HEADER, VERSION_HEADER
from streamtrain.ui.lineage_tables import merged
from streamtrain.ui.tracing import Named, named
from streamtrain.ui.verifying import Verifying
from tests.e2e import threaded
from tests.ui.conftest import Shown
from tests.ui.test_browser import no_errors, text_of
from tests.ui.test_server import more, trained

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


def test_round_logs_from_the_first_that_is_asked_for(kafka: Any, tmp_path: Path) -> None:
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
def test_what_the_topic_keeps_no_more_is_told_by_its_log(kafka: Any, tmp_path: Path, served: Any, browser: Any) -> None:
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

    with closing(Shown(job.job.kafka, [job.job])) as cluster:
        following = cluster.of(job.name)
        assert following is not None
        verifying = cluster.beside(following, Verifying)
        verifying.start(fast=False)
        verifying.stop()
        result = wait_for(lambda: verifying.result)
        assert result.report is None and "stopped" in result.error and not verifying.running
