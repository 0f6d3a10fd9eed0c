"""Tests of the columns that `init` makes, over drawn samples: each kind of mistake of a first job, and what must not
change.
"""

from __future__ import annotations

import base64
import json
import math
import random
import re
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from long_tables import in_full_all
from sending import send

from streamtrain.cli.first_job.columns import decide
from streamtrain.cli.first_job.job_trial import dead_rows
from streamtrain.cli.first_job.sample import Decision, Sample
from streamtrain.columns.row_plan import RowPlan
from streamtrain.job import Job
from streamtrain.schemas import bare_format, job_format
from tests.cli.conftest import Run

Draw = Callable[[random.Random], list[Any]]
ROWS = 600


def decisions(columns: dict[str, list[Any]], label: str) -> dict[str, Decision]:
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return {each.name: each for each in decide(Sample.of("sample", rows, [label]), {})}


def decision_of(name: str, cells: list[Any], label: list[Any] | None = None) -> Decision:
    """The decision for a column beside a number and a label of its own."""
    drawn = random.Random(1)
    columns = {
        name: cells,
        "beside": [drawn.random() for _ in cells],
        "y": label or [at % 2 for at in range(len(cells))],
    }
    return decisions(columns, "y")[name]


def ids(count: int, first: int = 1, step: int = 1) -> Draw:
    return lambda drawn: [first + step * drawn.randrange(count) for _ in range(ROWS)]


IDS: dict[str, Draw] = {
    "userId": ids(60), "movie_id": ids(90), "store": ids(40), "zip": ids(80, 10001), "item-code": ids(50, 300),
    "UserID": ids(30, 7, 13), "tweet": ids(50, 1_600_000_000_000_000_000, 7),
}  # fmt: skip
QUANTITIES: dict[str, Draw] = {
    "age": ids(60, 18), "user_count": ids(50), "num_items": ids(30), "items": ids(30), "year": ids(40, 1980),
    "hour": ids(24, 0), "store_size": ids(99), "lag": lambda drawn: [int(drawn.expovariate(0.05)) for _ in range(ROWS)],
    "grade": ids(5), "height_cm": ids(50, 150),
    "fare": lambda drawn: [round(drawn.gauss(40, 9), 2) for _ in range(ROWS)],
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_are_ids_by_name_and_size_and_quantities_stay_numbers(seed: int) -> None:
    drawn = random.Random(seed)
    found = {name: decision_of(name, draw(drawn)).kind for name, draw in {**IDS, **QUANTITIES}.items()}
    assert found == {**dict.fromkeys(IDS, "category"), **dict.fromkeys(QUANTITIES, "number")}


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_that_tell_the_label_without_order_are_ids(seed: int, binary: bool) -> None:
    """A name that says nothing: the label decides."""
    drawn = random.Random(seed)
    cells = [drawn.randrange(40) for _ in range(2000)]
    effect = [drawn.gauss(0, 1) for _ in range(40)]
    without = [effect[cell] for cell in cells]
    smooth = [cell / 20 - 1 for cell in cells]
    nothing = [0.0 for _ in cells]
    found = []
    for means in (without, smooth, nothing):
        label: list[Any] = [mean + drawn.gauss(0, 0.5) for mean in means]
        found.append(decision_of("thing", cells, [("no", "yes")[each > 0] for each in label] if binary else label).kind)
    assert found == ["category", "number", "number"]


def test_whole_numbers_that_float32_rounds_are_never_numbers() -> None:
    drawn = random.Random(5)
    one_each = decision_of("ref", [(1 << 24) + drawn.randrange(1 << 40) for _ in range(ROWS)])
    assert one_each.kind == "left out" and "16,777,216" in one_each.reason
    assert decision_of("ref", [drawn.randrange(1 << 24) for _ in range(ROWS)]).kind == "number"


LABELS: list[tuple[str, Draw, str]] = [
    ("y", lambda drawn: [drawn.choice(["+1", "-1"]) for _ in range(ROWS)], "binary_cross_entropy"),
    ("y", lambda drawn: [drawn.choice(["0.0", "1.0"]) for _ in range(ROWS)], "binary_cross_entropy"),
    ("y", lambda drawn: [drawn.choice([0.0, 1.0, 2.0]) for _ in range(ROWS)], "softmax_cross_entropy"),
    ("letter", lambda drawn: [drawn.randrange(26) for _ in range(ROWS)], "softmax_cross_entropy"),
    ("kind", lambda drawn: [float(1 + drawn.randrange(40)) for _ in range(ROWS)], "softmax_cross_entropy"),
    ("rating", lambda drawn: [drawn.randint(1, 5) for _ in range(ROWS)], "mean_squared_error"),
    ("stars", lambda drawn: [drawn.randint(2, 10) / 2 for _ in range(ROWS)], "mean_squared_error"),
    ("age", lambda drawn: [drawn.randint(18, 60) for _ in range(ROWS)], "mean_squared_error"),
    ("y", lambda drawn: [int(drawn.expovariate(0.1)) for _ in range(ROWS)], "mean_squared_error"),
    ("y", lambda drawn: [round(drawn.gauss(50, 9)) for _ in range(ROWS)], "mean_squared_error"),
    ("y", lambda drawn: [drawn.gauss(50, 9) for _ in range(ROWS)], "mean_squared_error"),
]


@pytest.mark.parametrize("seed", range(3))
def test_a_label_of_few_whole_values_is_classes_and_ratings_and_counts_are_numbers(seed: int) -> None:
    drawn, found = random.Random(seed), []
    for name, draw, loss in LABELS:
        decision = decisions({"x": [drawn.random() for _ in range(ROWS)], name: draw(drawn)}, name)[name]
        if decision.loss != loss or (decision.classes > 2 and "mean_squared_error" not in decision.other):
            found.append((name, loss, decision))
    assert found == []


def test_few_values_have_an_id_each_and_many_eight_buckets() -> None:
    """No two values of a column share a bucket by chance where they are few."""
    for distinct, typed in [(2, False), (8, False), (8, True), (400, False), (400, True), (2000, False), (2000, True)]:
        cells = [at % distinct if typed else f"v{at % distinct}" for at in range(max(ROWS, 4 * distinct))]
        column = tomllib.loads(f"x = {{ {decision_of('store', cells).settings} }}")["x"]
        if distinct <= 512:
            assert column["vocabulary"]["capacity"] >= 2 * distinct
        else:
            assert column["buckets"] >= 8 * distinct


START = datetime(2024, 1, 1, tzinfo=UTC)
RISING = [(START + timedelta(minutes=at)).isoformat() for at in range(ROWS)]
MIXED = [(START + timedelta(days=at * 7919 % 997)).date().isoformat() for at in range(ROWS)]


@pytest.mark.parametrize(
    ("times", "event_time"),
    [
        ({"signup_date": MIXED}, None), ({"birth": MIXED, "due_date": MIXED[::-1]}, None),
        ({"signup_date": MIXED, "ts": MIXED}, "ts"), ({"signup_date": MIXED, "seen": RISING}, "seen"),
        ({"created_at": MIXED, "seen": RISING}, "created_at"), ({"a": RISING, "event_time": RISING}, "event_time"),
        ({"eventTime": MIXED}, "eventTime"), ({"day": RISING}, "day"),
    ],
)  # fmt: skip
def test_the_event_time_is_found_by_its_name_or_by_rising(times: dict[str, list[str]], event_time: str | None) -> None:
    found = decisions(
        {**times, "x": [at * 7 % 13 + 0.5 for at in range(ROWS)], "y": [at % 2 for at in range(ROWS)]}, "y"
    )
    assert {name: found[name].kind for name in times} == {
        name: "event_time" if name == event_time else "left out" for name in times
    }
    assert event_time or all('role = "event_time"' in found[name].other for name in times)


def test_a_time_and_a_label_alone_learn_from_the_parts_of_the_time(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("when,demand\n" + "".join(f"{when},{at % 17}.5\n" for at, when in enumerate(RISING)))
    assert run("init", tmp_path / "job.toml", "--from", path, "--label", "demand").code == 0
    job = Job.load(tmp_path / "job.toml")
    assert dict(job.schema.columns)["when"].role == "event_time"
    assert "hour_sin" in str([name for name, _ in job.schema.every])


def test_an_object_of_many_keys_is_a_map_of_features(run: Run, tmp_path: Path) -> None:
    drawn, path = random.Random(2), tmp_path / "rows.jsonl"
    rows = [{"f": {f"w{drawn.randrange(900)}": 1.5 for _ in range(6)}, "user": {"age": at % 50 + 0.5}, "y": at % 2}
            for at in range(400)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("init", tmp_path / "job.toml", "--from", path, "--label", "y").code == 0
    columns = tomllib.loads((tmp_path / "job.toml").read_text())["columns"]
    assert columns["f"]["kind"] == "sparse" and columns["user_age"]["path"] == "user.age" and len(columns) == 3


CELLS = [
    None, True, False, 0, -7, 10**20, 1 << 40, 1.5, -0.0, 1e300, 2.0, "", "NA", "nan", "-", "7", "07", "+1", "1.5",
    "1,234", "$3", "12 %", "yes", "True", "2024-01-05", "2024-01-05T10:00:00Z", "2024-01-05 10:00:00 UTC", "a b c d",
    "[0]", [], [1], ["a", "b"], [[1, 2]], [1.5, 2], {}, {"p": 1}, {"p": "a", "q": None}, {"p": {"q": [1]}},
]  # fmt: skip


@in_full_all()
def test_what_init_was_shown_decodes_under_the_job_it_wrote(run: Run, tmp_path: Path, take: Any) -> None:
    """Columns of cells as they come, of one kind, of two or of many, with and without keys that are absent, beside an
    index without a name."""
    path, failed = tmp_path / "rows.jsonl", []
    for seed in take(range(40)):
        drawn = random.Random(seed)
        columns = {f"c{at}": drawn.choices(CELLS, k=drawn.choice([1, 2, 2, 9])) for at in range(4)}
        rows = [
            {**{name: drawn.choice(cells) for name, cells in columns.items() if drawn.random() < 0.97},
             "": row, "x": drawn.random(), "y": drawn.choice([0, 1])}
            for row in range(30)
        ]  # fmt: skip
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        ended = run("init", tmp_path / "job.toml", "--from", path, "--label", "y", "--force")
        job = None if ended.code else Job.load(tmp_path / "job.toml")
        if job is None or dead_rows(job, path.read_bytes().splitlines()):
            failed.append((seed, ended.err))
    assert failed == []


@pytest.mark.parametrize("wrapped", [False, True])
def test_change_events_are_learned_from_the_row_after_the_change(run: Run, tmp_path: Path, wrapped: bool) -> None:
    """Not from the row before it, in which the old label is; a delete leaves no row."""
    drawn, path, events = random.Random(4), tmp_path / "rows.jsonl", []
    for at in range(300):
        row = {"id": at, "op": drawn.choice("xy"), "amount": drawn.random(), "to": {"city": drawn.choice("abc")}}
        row["fraud"] = at % 2
        op = "cudr"[at % 4]
        event = {"op": op, "before": row if op in "ud" else None, "after": None if op == "d" else row,
                 "source": {"table": "t"}, "ts_ms": 1_700_000_000_000 + at}  # fmt: skip
        events.append({"schema": {"type": "struct"}, "payload": event} if wrapped else event)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert run("init", tmp_path / "job.toml", "--from", path, "--label", "fraud").code == 0
    job = Job.load(tmp_path / "job.toml")
    above = "payload." if wrapped else ""
    assert {name: (column.role, column.path) for name, column in job.schema.columns} == {
        "op_": ("input", f"{above}op"), "op": ("feature", f"{above}after.op"),
        "amount": ("feature", f"{above}after.amount"),
        "to_city": ("feature", f"{above}after.to.city"), "fraud": ("label", f"{above}after.fraud"),
    }  # fmt: skip
    plan = RowPlan(job.schema, job_format(job), bare_format(job))
    decoded = plan.decode(path.read_bytes().splitlines(), errors="leave_out")
    assert (decoded.count, decoded.filtered, decoded.left_out) == (225, 75, [])


@pytest.mark.parametrize("is_change", [False, True])
def test_decimals_of_connect_are_read_by_their_scale(run: Run, tmp_path: Path, is_change: bool) -> None:
    """Numbers, ids and classes; a decimal with its scale beside it, or of two scales, is left out with the remedy."""
    drawn, path, job = random.Random(5), tmp_path / "rows.jsonl", tmp_path / "job.toml"
    scales, cells = {"price": 2, "fee": 6, "userId": 0, "y": 0, "odd": 1}, []
    variable = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": [
        {"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}]}  # fmt: skip
    above = "payload.after" if is_change else "payload"
    with path.open("w") as file:
        for at in range(200):
            whole = {"price": drawn.randint(-30_000, 30_000), "fee": drawn.randint(0, 1 << 24), "y": at % 2,
                     "userId": drawn.randint(70_000, 70_020), "odd": at}  # fmt: skip
            raw = {name: base64.b64encode(at.to_bytes(8, "big", signed=True)).decode() for name, at in whole.items()}
            cells.append({name: Decimal(each).scaleb(-scales[name]) for name, each in whole.items()})
            of_row = [
                {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "field": name, "parameters": {
                    "scale": str(scale + (name == "odd" and at > 100))}} for name, scale in scales.items()
            ]  # fmt: skip
            inner = {"type": "struct", "field": "in", "fields": [of_row[1]]}
            of_row = [of_row[0], *of_row[2:], inner, {**variable, "field": "tax"}]
            of_payload = [{"type": "struct", "field": side, "fields": of_row} for side in ("before", "after")]
            schema = {"type": "struct", "fields": of_payload if is_change else of_row}
            row = {**raw, "in": {"fee": raw.pop("fee")}, "tax": {"scale": 2, "value": raw["price"]}}
            event = {"op": "c", "before": None, "after": row, "source": {}} if is_change else row
            file.write(json.dumps({"schema": schema, "payload": event}) + "\n")
    ended = run("init", job, "--from", path, "--label", f"{above}.y", "--json")
    assert ended.code == 0, ended.err
    columns = {name.removeprefix("payload_"): each for name, each in ended.document["columns"].items()}
    for name in ("tax", "odd"):
        assert columns[name]["kind"] == "left out" and "decimal.handling.mode" in columns[name]["reason"], columns
    assert not {"tax_scale", "tax_value"} & columns.keys()
    known = Job.load(job)
    assert {name.removeprefix("payload_"): column.parse for name, column in known.schema.columns if column.parse} == {
        "price": "connect_decimal:2", "in_fee": "connect_decimal:6", "userId": "connect_decimal:0",
        "y": "connect_decimal:0"}  # fmt: skip
    assert columns["userId"]["kind"] == "category"
    decoded = RowPlan(known.schema, "json", "json").decode(path.read_bytes().splitlines())
    for name, of in (("price", "price"), ("in_fee", "fee"), ("y", "y")):
        found = next(column for column in decoded if column.removeprefix("payload_") == name)
        assert decoded[found].tolist() == [float(row[of]) for row in cells]
    refused = run("init", job, "--from", path, "--label", f"{above}.odd", "--force")
    assert refused.code == 2 and "decimal.handling.mode" in refused.err


ODD: dict[str, Any] = {"inf": math.inf, "-Infinity": "-Infinity", "1e400": "1e400", "list": [1.0], "object": {"v": 1}}


@pytest.mark.parametrize(
    ("label", "cells"), [("y", ODD), ("fare", {"inf": math.inf}), pytest.param("fare", ODD, marks=pytest.mark.full)]
)
def test_a_rare_cell_that_is_no_number_leaves_its_column_in(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture, label: str, cells: dict[str, Any]
) -> None:
    """One row of 1,000 is a dead letter, and a line says so; in one of 60 the column is left out, or refused."""
    drawn, job = random.Random(6), tmp_path / "job.toml"
    rows = [{"fare": round(drawn.gauss(40, 9), 2), "word": drawn.choice("abc"), "y": at % 2} for at in range(1000)]
    for name, odd in cells.items():
        bad = [*rows[:500], {**rows[500], "fare": odd}, *rows[501:]]
        paths = {"rows.jsonl": "".join(json.dumps(row).replace("Infinity", "1e999") + "\n" for row in bad)}
        if not isinstance(odd, list | dict):
            paths["rows.csv"] = "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in bad)])
        for path, text in paths.items():
            (tmp_path / path).write_text(text)
            caplog.clear()
            ended = run("init", job, "--from", tmp_path / path, "--label", label, "--force")
            assert ended.code == 0, (name, path, ended.err)
            known = Job.load(job)
            column = dict(known.schema.columns)["fare"]
            assert column.entry.is_numeric(column) and not column.has_stand_in, (name, path)
            (said,) = [record.message for record in caplog.records if "dead letters" in record.message]
            assert "1 of the sample's 1000 rows cannot be used for their " in said, (name, path)
            assert run("init", tmp_path / "few.toml", "--from", tmp_path / path, "--label", label, "--force").code == 0
        (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bad[470:530]))
        few = run("init", job, "--from", tmp_path / "few.jsonl", "--label", label, "--force", "--json")
        refused = few.code == 2 if label == "fare" else few.document["columns"].get("fare", {}).get("kind") != "number"
        assert refused or name in ("-Infinity", "1e400"), (name, few)


def test_a_job_from_a_topic_takes_the_topics_records(run: Run, kafka: Any, tmp_path: Path) -> None:
    """Times and numbers that are texts there, a tombstone, and another number of partitions than a new job has."""
    topic, drawn, path = kafka.fresh_name("events"), random.Random(6), tmp_path / f"{kafka.fresh_name('init')}.toml"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result()
    events = []
    for at in range(300):
        data = {"amount": f"{drawn.random():.2f}", "items": drawn.randint(1, 5), "fraud": at % 2}
        event = {"specversion": "1.0", "time": RISING[at].replace("+00:00", "Z"), "type": drawn.choice("ab")}
        events.append(json.dumps({**event, "data": data}))
    send(kafka.bootstrap, topic, [*map(str.encode, events), None])
    assert run("init", path, "--from-topic", topic, "--label", "data.fraud", "-b", kafka.bootstrap).code == 0
    assert {name: column.kind or column.role for name, column in Job.load(path).schema.columns} == {
        "time": "event_time", "type": "category", "data_amount": "number", "data_items": "number",
        "data_fraud": "label",
    }  # fmt: skip
    assert run("topics", "create", path).code == 0
    ended = run("check", path, "--json")
    assert ended.code == 0
    found = {each["what"]: each for each in ended.document["findings"]}
    assert found["records"]["text"] == "301 records: 300 trained, 1 tombstones", found
    assert "expected" not in str(found["topics"]) and "categories" not in found, found
    one = path.with_name("one.toml")
    one.write_text(re.sub(r"(?m)^type = .*", 'type = { kind = "category", buckets = 1 }', path.read_text()))
    (tmp_path / "rows.jsonl").write_text("\n".join(events))
    for given in ((), ("--files", tmp_path / "rows.jsonl")):
        findings = run("check", one, "--json", *given).document["findings"]
        assert [each["text"][:49] for each in findings if each["what"] == "categories"] == [
            "type: 2 of 2 frequent values share a bucket with "], findings  # fmt: skip
    nothing = run("init", path, "--force", "--from-topic", topic + "x", "--label", "y", "-b", kafka.bootstrap)
    assert nothing.code == 2 and topic in nothing.err


def test_a_sample_with_odd_rows_makes_a_job_or_a_clear_error(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers beyond a double, rows that are no change events, broken records; never another library's exception."""
    change = [{"payload": {"op": "c", "after": {"a": at / 7, "y": at % 2}, "source": {}}} for at in range(60)]
    plain = [{"a": at / 7, "y": at % 2} for at in range(60)]
    number = [{"a": at / 7, "y": at / 3} for at in range(60)]
    samples: dict[str, tuple[Any, str | None]] = {
        "a huge number": ([*plain[1:], {"a": 10**400, "b": 1, "y": 1}], None),
        "a huge label": ([*number[1:], {"a": 1, "y": 10**400}], "label y"),
        "many digits": ([*plain[1:], {"a": 1, "y": 1}, {"a": 2, "b": "9" * 5000, "y": 1}], None),
        "no change": ([*change, {"payload": None}], None),
        "no payload": ([*change, {"schema": 1}], None),
        "deletes alone": ([{"op": "d", "before": plain[0], "after": None, "source": {}}] * 60, "deletes alone"),
        "half a pair": ([*plain, {"a": 1, "c": "\ud800", "y": 1}], None),
        "halves of pairs": ([{**row, "c": "\ud800"} for row in plain], "cannot be used by any job"),
    }
    failed = {}
    for name, (rows, error) in samples.items():
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        ended = run("init", tmp_path / "job.toml", "--from", tmp_path / "rows.jsonl", "--label", "y", "--force")
        if ended.code != (0 if error is None else 2) or (error or "") not in ended.err:
            failed[name] = ended
    assert failed == {} and "they will be dead letters" in caplog.text
    (tmp_path / "deep.json").write_text("[" * 3000)
    assert "element 1" in run("init", tmp_path / "j.toml", "--from", tmp_path / "deep.json", "--label", "y").err
