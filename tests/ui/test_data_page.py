"""The data page over a real Kafka: its columns are those that were produced, and dead letters are opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import wait_for

from streamtrain.analysis.summary import Summary
from streamtrain.ui import sampling
from streamtrain.ui.data_tables import dump
from streamtrain.ui.sampling import Sample, sampled
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.ui.conftest import Shown
from tests.ui.test_browser import no_errors, text_of
from tests.ui.test_lineage_page import table_of

FORMAT = {"format": "json", "partitions": 2, "max_dead_letter_share": 0.5}


def shifted(count: int, seed: int, by: float, colour: str = "") -> Iterator[dict[str, Any]]:
    for row in rows(count, seed):
        yield {**row, "x1": row["x1"] + by, "colour": colour or row["colour"]}


def encoded(made: Any) -> list[bytes]:
    return [json.dumps(row).encode() for row in made]


@contextmanager
def sample_of(job: LiveJob) -> Iterator[Sample]:
    with closing(Shown(job.job.kafka, [job.job])) as cluster:
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
        for window, made in ((sample.first, oldest), (sample.last, newest)):
            of = window.columns["x1"]
            values = np.array([row["x1"] for row in made], np.float32).astype(np.float64)
            assert of["mean"] == pytest.approx(values.mean()) and of["deviation"] == pytest.approx(values.std())
        first, last = sample.first.values["colour"], sample.last.values["colour"]
        reds = sum(row["colour"] == "red" for row in oldest[: first.rows])
        assert dict(first.counts)["red"] == reds and last.counts == [("black", last.rows)] and last.rows == 80
        summaries = [Summary(job.job), Summary(job.job)]
        for summary, made in zip(summaries, (oldest, newest), strict=True):
            list(summary.add(encoded(made)))
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
    made = list(rows(2000))
    job.produce_values([json.dumps(made[at : at + 50]).encode() for at in range(0, 2000, 50)])
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
    shown = dump(b"abc\x00\xff" + b"<" * 14)
    first, second = shown.splitlines()
    assert first.startswith("00000  61 62 63 00 ff 3c") and first.endswith("abc..<<<<<<<<<<<")
    assert second.split() == ["00010", "3c", "3c", "3c", "<<<"] and dump(b"") == ""
