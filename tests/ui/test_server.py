"""`streamtrain ui` over a real Kafka, asked as a browser asks: its numbers are the topics', and it changes nothing."""

from __future__ import annotations

import csv
import html
import json
import signal
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from trained_job import NO_RECORD, TRAINED, TrainedJob
from waiting import wait_for

from streamtrain.cli import main
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.topics.predictions import DIGEST_HEADER, VERSION_HEADER
from streamtrain.ui import pages
from streamtrain.ui.sampling import Sampling
from tests.e2e import threaded
from tests.e2e.harness import LiveJob


def trained(kafka: Any, tmp_path: Path, rows: int = 2000, **settings: Any) -> LiveJob:
    job = LiveJob(kafka, tmp_path, **settings)
    more(job, rows)
    return job


def more(job: LiveJob, rows: int, seed: int = 0) -> None:
    """Trains on so many rows more."""
    job.produce(rows, seed)
    threaded.rows_after(job.path)


def line_of(found: Any, chart: str, name: str) -> list[list[float]]:
    lines = [line for job in found["charts"][chart] for line in job["lines"] if line["name"] == name]
    return lines[0]["points"] if lines else []


def test_what_is_drawn_is_what_the_topics_say(kafka: Any, tmp_path: Path, shown: Any) -> None:
    job = trained(kafka, tmp_path)
    page = shown(job.job)
    found = wait_for(lambda: (got := page.points(job.name))["charts"]["progressive_loss"][0]["lines"] and got)
    manifest = job.newest().manifest
    chart = found["charts"]["progressive_loss"][0]
    assert chart["title"] == "log loss" and chart["anew"]
    assert line_of(found, "progressive_loss", "in total")[-1] == [
        manifest.created_ms, manifest.metrics["total"]["log_loss"]
    ]  # fmt: skip
    by_rows = page.points(job.name, x="rows")
    assert line_of(by_rows, "progressive_loss", "in total")[-1][0] == manifest.rows_seen
    assert by_rows["charts"]["lag"][0]["lines"] == []  # over time alone
    marks = wait_for(lambda: page.points(job.name)["marks"][0]["marks"])
    assert [mark["kind"] for mark in marks] == ["run began", "run stopped"]

    # only what is new, once it is drawn
    drawn = {f"{job.name} {name}": of[0]["after"] for name, of in found["charts"].items()}
    after = urllib.parse.quote(json.dumps(drawn))
    again = page.points(job.name, after=after)["charts"]["progressive_loss"][0]
    assert again["lines"] == [] and not again["anew"]
    more(job, 1000, seed=1)
    newest = job.newest().manifest

    def new() -> Any:
        chart = page.points(job.name, after=after)
        points = line_of(chart, "progressive_loss", "in total")
        return points if points and points[-1][0] == newest.created_ms else None

    points = wait_for(new)
    assert points[-1][1] == newest.metrics["total"]["log_loss"] and points[0][0] > manifest.created_ms

    status, text = page.get(f"/api/csv/progressive_loss?job={job.name}")
    last = [*csv.DictReader(text.splitlines())][-1]
    assert status == 200 and [*last][:2] == ["time_ms", "rows"] and int(last["rows"]) == newest.rows_seen
    assert float(last["total.log_loss"]) == newest.metrics["total"]["log_loss"]
    job.verified()


def test_pages_of_every_state(kafka: Any, trained_job: TrainedJob, tmp_path: Path, shown: Any) -> None:
    job = LiveJob(kafka, tmp_path)  # topics, and nothing in them
    page = shown(job.job)
    for path in ("/", f"/overview?job={job.name}", "/overview", "/overview?job=nobody", "/overview?job=%3Cb%3E"):
        status, body = page.get(path)
        assert status == 200 and "streamtrain" in body and "<b>" not in body, path
    assert page.points(job.name)["marks"] == [{"job": job.name, "marks": []}]
    for path, expected in (("/api/csv/loss?job=x", 404), ("/assets/nothing.js", 404), ("/nothing", 404)):
        assert page.get(path)[0] == expected, path
    assert page.get("/assets/..%2Fapp.py")[0] == 404
    for after in ("{", "[]", "7", '{"a":"b"}', '{"a":null}'):
        assert page.get(f"/api/points?job={job.name}&after={urllib.parse.quote(after)}")[0] == 200, after

    shown(trained_job.job)
    for route in (each.ROUTE for each in pages.in_order()):
        for name in (job.name, trained_job.name):
            status, body = page.get(f"{route}?job={name}")
            assert status == 200 and name in body, (route, name)
    wait_for(lambda: "There is no snapshot yet" in page.get(f"/model?job={job.name}")[1])
    assert "streamtrain train" in page.get(f"/model?job={job.name}")[1]
    assert "<b>none" not in (body := page.get("/model?job=%3Cb%3Enone")[1]) and "There is no job" in body


def test_pages_say_what_the_topics_do(trained_job: TrainedJob, shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages as HTML; tests/ui/test_*_page.py read them in a browser."""
    monkeypatch.setattr(Sampling, "renew", lambda sampling: None)  # each look at the page would begin anew
    page, job = shown(trained_job.job), trained_job
    newest = job.newest()
    version = newest.manifest.version

    def says(route: str, *texts: str, **asked: Any) -> bool:
        body = page.get(f"/{route}?{urllib.parse.urlencode({'job': job.name, **asked})}")[1]
        body = html.unescape(html.unescape(body))  # HTML in a page's JSON
        return all(text in body for text in texts)

    letter = next(each for each in read_dead_letters(job.job) if each.letter.value == NO_RECORD)
    place = f"{letter.partition}@{letter.offset}"
    headers = f"{VERSION_HEADER}: {version}\n{DIGEST_HEADER}: "
    for route, asked, texts in (
        ("data", {}, ("Columns as records give them", "Dead letters", place, "$.delay")),
        ("data", {"letter": place}, (f"Dead letter {place}", "00 ff 20 6e 6f")),
        ("data", {"letter": "0@999"}, ("expected a dead letter at 0@999",)),
        ("lineage", {"headers": headers + newest.digest.hex()},
         (f"prediction was made by version {version}", f"{TRAINED:,} rows trained", f"What version {version} added")),
        ("lineage", {"headers": headers + "5f" * 32}, ("Not made by this job's version",)),
        ("lineage", {"headers": "nothing"}, ("Expected a header streamtrain-version",)),
        ("lineage", {"snapshot": 900}, ("Nothing tells of version 900",)),
        ("lineage", {"snapshot": 1}, ("It begins its lineage", "train.batch_rows")),
        ("model", {}, (f"Blocks of version {version}", "dense0.weight", "carrier.embedding")),
        ("model", {"against": 1}, ("The same blocks in version 1",)),
    ):  # fmt: skip
        wait_for(lambda of=(route, asked, texts): says(of[0], *of[2], **of[1]), 60)
    assert says("", job.name, f"{TRAINED:,}", "st-ended")


def test_every_job_of_the_cluster_is_found_and_strangers_are_refused(
    kafka: Any, trained_job: TrainedJob, tmp_path: Path, served: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Each server ends by its signal."""
    before = own_topics(trained_job)
    page = served("--bootstrap", kafka.bootstrap, "--host", "127.0.0.2")
    wait_for(lambda: page.points(trained_job.name)["charts"]["progressive_loss"])
    assert own_topics(trained_job) == before
    assert [page.get("/", {"Host": host})[0] for host in ("127.0.0.2", "127.0.0.1", "evil.example")] == [200, 200, 403]
    assert page.get("/api/points?job=x", {"Origin": "http://evil.example"})[0] == 403
    page.process.send_signal(signal.SIGINT)
    assert page.process.wait(60) == 130

    with pytest.raises(SystemExit, match="2"):
        main(["ui", "--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", "--port", "0"])
    assert "expected a token" in capsys.readouterr().err
    (tmp_path / "token").write_text("s3cret+/6chars==\n")
    monkeypatch.setenv("STREAMTRAIN_TOKEN", "0123456789abcdef")
    guarded = served("--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    assert guarded.get("/")[0] == 403 and guarded.get("/?token=0123456789abcdef")[0] == 403
    assert guarded.get("/?token=s3cret+/6chars==")[0] == 200
    guarded.process.send_signal(signal.SIGTERM)
    assert guarded.process.wait(60) == 0


def own_topics(job: LiveJob) -> dict[str, Any]:
    """The ends of the job's topics: others make theirs on the tests' Kafka."""
    return {name: job.admin.spans(name) for name in sorted(job.admin.names()) if name.startswith(f"{job.name}.")}
