"""`streamtrain ui` over a real Kafka, asked as a browser asks: its numbers are the topics', and it changes nothing."""

from __future__ import annotations

import json
import signal
import urllib.parse
from pathlib import Path
from typing import Any

from waiting import wait_for

from streamtrain.kafka.admin import Admin
from tests.e2e import commands
from tests.e2e.harness import LiveJob


def trained(kafka: Any, tmp_path: Path, rows: int = 2000, **settings: Any) -> LiveJob:
    job = LiveJob(kafka, tmp_path, **settings)
    job.produce(rows)
    job.train("--until-end")
    return job


def line_of(found: Any, chart: str, name: str) -> list[list[float]]:
    lines = [line for job in found["charts"][chart] for line in job["lines"] if line["name"] == name]
    return lines[0]["points"] if lines else []


def test_what_is_drawn_is_what_the_topics_say(kafka: Any, tmp_path: Path, served: Any) -> None:
    job = trained(kafka, tmp_path)
    page = served(str(job.path))
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
    told = wait_for(lambda: page.points(job.name)["marks"][0]["marks"])
    assert [mark["kind"] for mark in told] == ["run began", "run stopped"]

    # only what is new, once it is drawn
    drawn = {f"{job.name} {name}": of[0]["after"] for name, of in found["charts"].items()}
    after = urllib.parse.quote(json.dumps(drawn))
    again = page.points(job.name, after=after)["charts"]["progressive_loss"][0]
    assert again["lines"] == [] and not again["anew"]
    job.produce(1000, seed=1)
    job.train("--until-end")
    newest = job.newest().manifest

    def new() -> Any:
        chart = page.points(job.name, after=after)
        points = line_of(chart, "progressive_loss", "in total")
        return points if points and points[-1][0] == newest.created_ms else None

    points = wait_for(new)
    assert points[-1][1] == newest.metrics["total"]["log_loss"] and points[0][0] > manifest.created_ms

    status, text = page.get(f"/api/csv/progressive_loss?job={job.name}")
    head, *rows = text.splitlines()
    assert status == 200 and head.split(",")[:2] == ["time_ms", "rows"]
    last = dict(zip(head.split(","), rows[-1].split(","), strict=True))
    assert int(last["rows"]) == newest.rows_seen
    assert float(last["total.log_loss"]) == newest.metrics["total"]["log_loss"]
    job.verified()


def test_pages_of_every_state(kafka: Any, tmp_path: Path, served: Any) -> None:
    job = LiveJob(kafka, tmp_path)  # topics, and nothing in them
    page = served(str(job.path))
    for path in ("/", f"/overview?job={job.name}", "/overview", "/overview?job=nobody", "/overview?job=%3Cb%3E"):
        status, body = page.get(path)
        assert status == 200 and "streamtrain" in body and "<b>" not in body, path
    assert page.points(job.name)["marks"] == [{"job": job.name, "marks": []}]
    for path, expected in (("/api/csv/loss?job=x", 404), ("/assets/nothing.js", 404), ("/nothing", 404)):
        assert page.get(path)[0] == expected, path
    assert page.get("/assets/..%2Fapp.py")[0] == 404
    for after in ("{", "[]", "7", '{"a":"b"}', '{"a":null}'):
        assert page.get(f"/api/points?job={job.name}&after={urllib.parse.quote(after)}")[0] == 200, after


def test_every_job_of_the_cluster_is_found(kafka: Any, tmp_path: Path, served: Any) -> None:
    job = trained(kafka, tmp_path, rows=300)
    before = own_topics(kafka, job)
    page = served("--bootstrap", kafka.bootstrap)
    wait_for(lambda: page.points(job.name)["charts"]["progressive_loss"])
    assert own_topics(kafka, job) == before


def own_topics(kafka: Any, job: LiveJob) -> dict[str, Any]:
    """The ends of the job's topics: others make theirs on the tests' Kafka."""
    admin = Admin(kafka.bootstrap)
    return {name: admin.spans(name) for name in sorted(admin.names()) if name.startswith(f"{job.name}.")}


def test_a_stranger_and_another_site_are_refused(kafka: Any, tmp_path: Path, served: Any) -> None:
    page = served("--bootstrap", kafka.bootstrap)
    assert page.get("/", {"Host": "evil.example"})[0] == 403
    assert page.get("/api/points?job=x", {"Origin": "http://evil.example"})[0] == 403
    refused = commands.run(["ui", "--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", "--port", "0"])
    assert refused.returncode == 2 and "expected a token" in refused.stderr
    guarded = served("--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", STREAMTRAIN_TOKEN="s3cret+/6chars==")
    assert guarded.get("/")[0] == 403
    assert guarded.get("/?token=s3cret+/6chars==")[0] == 200
    (tmp_path / "token").write_text("0123456789abcdef\n")
    guarded = served("--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    assert guarded.get("/")[0] == 403
    assert guarded.get("/?token=0123456789abcdef")[0] == 200
    elsewhere = served("--bootstrap", kafka.bootstrap, "--host", "127.0.0.2")
    assert [elsewhere.get("/", {"Host": host})[0] for host in ("127.0.0.2", "evil.example")] == [200, 403]


def test_it_ends_when_it_is_told(kafka: Any, served: Any) -> None:
    page = served("--bootstrap", kafka.bootstrap)
    page.process.send_signal(signal.SIGTERM)
    assert page.process.wait(60) == 0
    page = served("--bootstrap", kafka.bootstrap)
    page.process.send_signal(signal.SIGINT)
    assert page.process.wait(60) == 130
