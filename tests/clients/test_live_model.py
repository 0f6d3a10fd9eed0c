"""LiveModel and its scorer: answers of rows in any form are those of a request, each by one snapshot; what is no row;
and clients that read snapshots and predictions."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from at_once import run_at_once
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from publisher import Publisher, example_manifest
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.predictions import read_predictions
from streamtrain.clients.scorer import BATCH_ROWS, Scorer
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.columns.served import Served
from streamtrain.compute.model import Model
from streamtrain.errors import KafkaUnreachable, RecordError, SnapshotError, StreamtrainError, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.topics.predictions import RowError
from streamtrain.topics.topic import Message, job_topics

ROW = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}


def scorer_of(model: SmallModel, seed: int = 3) -> Scorer:
    manifest = example_manifest(seed, model_spec=model.spec, schema=model.schema.to_dict())
    return Scorer(Served.of(manifest, b"d" * 32, model.payload(seed)))


def rows(count: int) -> list[dict[str, Any]]:
    return [{**ROW, "dep_delay": number / 9, "carrier": f"C{number % 40}"} for number in range(count)]


def test_an_answer_is_that_of_a_request() -> None:
    """Which tests/columns/test_portable.py compares with NumPy: of probabilities, classes and numbers."""
    models = [SmallModel.make(layers=layers) for layers in ((), (8,), (16, 8))]
    classes = {"x": {}, "way": {"role": "label", "classes": ["walk", "sit", "lie"]}}
    models.append(SmallModel.make(classes, "softmax_cross_entropy"))
    models.append(SmallModel.make({"x": {}, "y": {"role": "label", "standardize": True}}, "mean_squared_error"))
    given = [{**row, "x": at / 9 - 2} for at, row in enumerate(rows(50))]
    for scorer in map(scorer_of, models):
        requests = [json.dumps(row).encode() for row in given]
        for row, (body, *_) in zip(
            given, scorer.served.request_scorer("json", 256).score("asked", requests), strict=True
        ):
            answer, expected = scorer.predict(row), json.loads(body)
            if "probabilities" in expected:
                assert answer["prediction"] == expected["prediction"]
                answer, expected = answer["probabilities"], expected["probabilities"]
            assert answer == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("count", [0, 1, 2, BATCH_ROWS, BATCH_ROWS + 1, 3 * BATCH_ROWS])
def test_many_rows_in_any_form_give_what_each_gives_alone(count: int) -> None:
    scorer, given = scorer_of(SmallModel.make()), rows(count)
    alone = [scorer.predict(row) for row in given]
    columns = {name: [row[name] for row in given] for name in ROW}
    forms = [given, tuple(given)]
    forms += [columns, {name: np.array(cells) for name, cells in columns.items()}, pd.DataFrame(given)] if count else []
    for form in forms:
        answers = scorer.predict(form)
        assert [answer["prediction"] for answer in answers] == pytest.approx([a["prediction"] for a in alone], abs=1e-6)


def test_label_and_unknown_fields_may_be_there_and_missing_has_its_value() -> None:
    scorer = scorer_of(SmallModel.make())
    plain = scorer.predict(ROW)
    assert scorer.predict({**ROW, "late": 1, "tail": "N1"}) == plain == scorer.predict({**ROW, "late": None})
    absent = {name: value for name, value in ROW.items() if name not in ("dep_delay", "origin")}
    assert scorer.predict(absent) == scorer.predict({**absent, "dep_delay": 0, "origin": ""})
    frame = pd.DataFrame([{**ROW, "dep_delay": float("nan")}])
    assert scorer.predict(frame) == [scorer.predict({**ROW, "dep_delay": 0})]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({**ROW, "distance": "far"}, r"row at \$\.distance: expected number, got \"far\""),
        ({"hour": 1}, r"row at \$\.distance: expected number, got nothing"),
        ({**ROW, "hour": float("nan")}, r"row at \$\.hour"),
        ([ROW] * 300 + [{**ROW, "hour": []}], r"row 300 at \$\.hour"),
        ({"distance": [1, 2], "hour": [3, None], "carrier": ["a", "b"]}, r"row 1 at \$\.hour"),
        ({"distance": np.array([1, np.inf]), "hour": [3, 4], "carrier": ["a", "b"]}, r"row 1 at \$\.distance"),
        ({**ROW, "hour": datetime(2026, 1, 2)}, r"row at \$\.hour: expected number, got datetime\.datetime"),
        ({**ROW, "hour": np.datetime64("2026-01-02")}, r"row at \$\.hour: expected number, got numpy\.datetime64"),
        (pd.DataFrame([{**ROW, "hour": pd.Timestamp("2026-01-02")}]), r"row 0 at \$\.hour: expected number, got"),
        ({**ROW, "hour": b"7"}, r"row at \$\.hour: expected number, got bytes"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(given: Any, text: str) -> None:
    with pytest.raises(RecordError, match=text):
        scorer_of(SmallModel.make()).predict(given)


class Loud(SmallModel):
    def state(self, seed: int) -> Any:
        state = super().state(seed)
        Model(self.spec).views(state)["output.weight"][:] = 1e30
        return state


def test_a_prediction_that_is_not_finite_is_an_error() -> None:
    model = Loud.make({"x": {}, "y": {"role": "label"}}, "mean_squared_error", ())
    row = {"x": 1e18}
    calm = dict.fromkeys(row, 1.0)
    with pytest.raises(RecordError, match=r"^row at \$: expected a finite prediction"):
        scorer_of(model).predict(row)
    with pytest.raises(RecordError, match=r"^row 2 at \$: expected a finite prediction"):
        scorer_of(model).predict([calm, calm, row])


@pytest.mark.parametrize("given", [7, "text", None, [1], [ROW, 1], {"distance": [1], "hour": [1, 2]}])
def test_what_is_no_rows_is_a_mistake(given: Any) -> None:
    with pytest.raises(UserMistake, match="rows"):
        scorer_of(SmallModel.make()).predict(given)


def test_snapshots_of_one_shape_share_it_and_none_is_put_into_another() -> None:
    model = SmallModel.make()
    before = scorer_of(model).served
    again = Served.of(before.manifest, b"e" * 32, model.payload(5), before)
    assert again.shape is before.shape
    wider = SmallModel.make(layers=(9,))
    manifest = example_manifest(4, model_spec=wider.spec, schema=wider.schema.to_dict())
    other = Served.of(manifest, b"d" * 32, wider.payload(4), before)
    assert other.shape is not before.shape and Scorer(other).predict(ROW) == scorer_of(wider, 4).predict(ROW)
    for payload, same in ((model.payload(4), manifest), (wider.payload(4), replace(manifest, model_spec=model.spec))):
        with pytest.raises(SnapshotError):
            Served.of(same, b"d" * 32, payload, before)


@pytest.mark.parametrize("changes", [{"model_spec": {}}, {"schema": {}}, {"model_spec": {"loss": "magic"}}])
def test_a_manifest_this_program_cannot_build_is_an_error(changes: dict[str, Any]) -> None:
    model = SmallModel.make()
    with pytest.raises(StreamtrainError):
        manifest = example_manifest(1, **{"model_spec": model.spec, "schema": model.schema.to_dict(), **changes})
        Served.of(manifest, b"d" * 32, model.payload(1))


def test_errors_may_be_returned_in_their_rows_places() -> None:
    scorer, bad = scorer_of(SmallModel.make()), {**ROW, "distance": "far"}
    good = scorer.predict([ROW])[0]
    many = [ROW] * 299 + [bad] + [ROW] * 3 + [{"hour": 1}]
    forms = [many, {name: [row.get(name) for row in many] for name in ROW}, iter(many)]
    for form in forms:
        answers = scorer.predict(form, errors="return")
        errors = {at: str(answer) for at, answer in enumerate(answers) if isinstance(answer, RecordError)}
        assert errors.keys() == {299, 303}
        assert errors[299] == 'row 299 at $.distance: expected number, got "far"'
        assert errors[303].startswith("row 303 at $.distance: expected number, got nothing")
        assert all(answer == good for at, answer in enumerate(answers) if at not in errors)
    alone = scorer.predict(bad, errors="return")
    assert isinstance(alone, RecordError) and str(alone) == 'row at $.distance: expected number, got "far"'
    assert scorer.predict(ROW, errors="return") == scorer.predict(ROW)
    for given in (ROW, [ROW]):
        with pytest.raises(UserMistake, match='errors="raise" or errors="return", got \'ignore\''):
            scorer.predict(given, errors="ignore")  # type: ignore[arg-type]


def test_values_of_other_types_are_taken_where_the_column_can() -> None:
    scorer = scorer_of(SmallModel.make())
    plain = scorer.predict(ROW)
    as_others = {"dep_delay": Decimal("3.5"), "distance": np.int16(7), "hour": np.float32(2), "carrier": b"UA"}
    assert scorer.predict({**ROW, **as_others}) == plain
    assert scorer.predict({**ROW, "dep_delay": float("nan")}) == scorer.predict({**ROW, "dep_delay": pd.NA})
    assert scorer.predict({**ROW, "dep_delay": None}) == scorer.predict({**ROW, "dep_delay": pd.NaT})
    ignored = {"late": object(), "tags": ["a", "b"], "at": datetime(2026, 1, 2), "x": float("inf")}
    assert scorer.predict({**ignored, **ROW}) == plain
    columns = {name: [value] for name, value in ROW.items()}
    assert scorer.predict({"tags": "none", **columns, "more": [1, 2, 3]}) == scorer.predict([ROW])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f8", ">i4", "?"])
def test_arrays_of_every_type_and_stride(dtype: str) -> None:
    scorer = scorer_of(SmallModel.make())
    hours = np.array([0, 1, 1, 0, 1], dtype)
    expected = [scorer.predict([{**ROW, "hour": int(hour)}])[0] for hour in hours]
    others = {name: [value] * 5 for name, value in ROW.items() if name != "hour"}
    assert scorer.predict({**others, "hour": hours}) == expected
    assert scorer.predict({**others, "hour": np.repeat(hours, 3)[::3]}) == expected
    assert scorer.predict({**others, "hour": hours[::-1]}) == expected[::-1]


def test_arrow_tables_and_their_nulls() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    scorer = scorer_of(SmallModel.make())
    given = [{**ROW, "dep_delay": None}, {**ROW, "carrier": "AA"}]
    assert scorer.predict(arrow.Table.from_pylist(given)) == scorer.predict(given)
    assert scorer.predict(arrow.RecordBatch.from_pylist(given)) == scorer.predict(given)


def test_a_workspace_in_use_serves_nobody_else() -> None:
    scorer = scorer_of(SmallModel.make())
    plain, inner = scorer.predict(ROW), [{**ROW, "hour": hour} for hour in range(5)]
    expected = scorer.predict(inner)

    class Nosy:
        """A number that predicts while it is read."""

        def __float__(self) -> float:
            assert scorer.predict(inner) == expected and scorer.predict(inner[0])["prediction"]
            return 3.5

    assert scorer.predict({**ROW, "dep_delay": Nosy()}) == plain
    columns = {name: [value] * 2 for name, value in ROW.items()}
    for given in ([{**ROW, "dep_delay": Nosy()}] * 2, {**columns, "dep_delay": [Nosy()] * 2}):
        assert scorer.predict(given) == scorer.predict([ROW, ROW])


def test_many_threads_predict_at_once_and_each_gets_its_own_rows_answers() -> None:
    scorer, given = scorer_of(SmallModel.make()), rows(3 * BATCH_ROWS)
    expected = scorer.predict(given)
    columns = {name: [row[name] for row in given] for name in ROW}
    numbers = {name: np.array(columns[name]) for name in ("dep_delay", "distance", "hour")}

    def work(turn: int) -> None:
        for number in range(40):
            at = (turn * 97 + number * 31) % len(given)
            for form in (given[at:], {name: cells[at:] for name, cells in columns.items()}):
                assert scorer.predict(form) == expected[at:], f"from row {at}"
            assert abs(scorer.predict(given[at])["prediction"] - expected[at]["prediction"]) <= 1e-6, f"row {at}"
            scorer.predict({**numbers, "carrier": columns["carrier"]})

    run_at_once({str(turn): partial(work, turn) for turn in range(8)})


MODEL = SmallModel.make()


@pytest.fixture
def job(kafka: Any) -> str:
    return str(kafka.fresh_name("live"))


def test_it_waits_for_the_first_trained_snapshot_and_follows(kafka: Any, job: str) -> None:
    """It says what it has and whether Kafka answers; damaged snapshots are left out, other models taken over."""
    publisher = Publisher(kafka.bootstrap, job)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        assert (model.ready, model.version, model.age_s, model.digest) == (False, None, None, None)
        with pytest.raises(UserMistake, match="found none yet"):
            model.predict(ROW)
        MODEL.put(publisher, 1, untrained=True)
        wait_for(lambda: model.connected)
        assert repr(model) == f"<LiveModel {job!r}: waiting for a snapshot>" and model.error is None
        with pytest.raises(UserMistake, match="found none yet"):
            model.wait_ready(0.3)
        publication = MODEL.put(publisher, 2, created_ms=int(time.time() * 1000))
        model.wait_ready(120)
        assert (model.version, model.digest) == (2, publication.digest.hex())
        assert repr(model).startswith(f"<LiveModel {job!r}: version 2, ") and repr(model).endswith(" s old>")
        answer = model.answer([ROW, ROW])
        assert (answer.version, answer.digest, answer.values) == (
            2,
            publication.digest.hex(),
            model.predict([ROW, ROW]),
        )
        assert 0 <= answer.age_s < 600 and model.age_s is not None and 0 <= model.age_s < 600
        assert isinstance(model.answer([ROW, {}], errors="return").values[1], RecordError)
        MODEL.put(publisher, 3)
        wait_for(lambda: model.version == 3)
        assert model.predict(ROW) != answer.values[0]
        publisher.put_damaged(4, MODEL.payload(4), lambda messages: messages[1:])
        other = SmallModel.make({"x": {}, "y": {"role": "label"}}, "mean_squared_error", ())
        other.put(publisher, 5)
        wait_for(lambda: model.version == 5)
        assert model.predict({"x": 1}).keys() == {"prediction"}
        publisher.put(6, b"", model_spec={**other.spec, "loss": "magic"}, schema=other.schema.to_dict())
        other.put(publisher, 7)
        wait_for(lambda: model.version == 7)
    model.close()
    assert repr(model) == f"<LiveModel {job!r}: closed>" and not model.connected
    with pytest.raises(UserMistake, match="closed"):
        model.predict(ROW)


def test_the_topic_is_deleted_and_made_again(kafka: Any, job: str) -> None:
    """The model keeps what it has until a higher version comes."""
    for version in range(1, 6):
        MODEL.put(Publisher(kafka.bootstrap, job), version)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(240)
        before = model.predict(ROW)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.delete_topics([f"{job}.snapshots"])[f"{job}.snapshots"].result()
        wait_for(lambda: f"{job}.snapshots" not in admin.list_topics(timeout=60).topics)
        assert (model.predict(ROW), model.version) == (before, 5)
        again = Publisher(kafka.bootstrap, job)
        MODEL.put(again, 3)  # another lineage's: a model's version never goes down
        MODEL.put(again, 7)
        wait_for(lambda: model.version == 7)
        assert model.predict(ROW) != before


def test_what_keeps_it_from_being_ready_is_said(kafka: Any, job: str) -> None:
    Publisher(kafka.bootstrap, job).put_damaged(1, MODEL.payload(1), lambda messages: messages[1:])
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        wait_for(lambda: model._error is not None)
        with pytest.raises(StreamtrainError, match="chunk s/0001/c/0000 is missing"):
            model.wait_ready(0.01)
    with LiveModel("job", bootstrap="127.0.0.1:9") as model:
        with pytest.raises(KafkaUnreachable, match=r"wait_ready\(0\.01\).*127\.0\.0\.1:9, got none"):
            model.wait_ready(0.01)
        wait_for(lambda: model.error is not None)
        assert isinstance(model.error, KafkaUnreachable) and not model.connected
        with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:9"):
            model.wait_ready(0.01)
        assert repr(model) == "<LiveModel 'job': waiting for a snapshot, no connection>"


@pytest.mark.parametrize(
    ("job", "bootstrap", "settings", "text"),
    [
        ("a/b", "localhost:9092", None, "expected a job's name of letters, digits"),
        ("", "localhost:9092", None, "expected a job's name"),
        (None, "localhost:9092", None, "expected a job's name"),
        (5, "localhost:9092", None, "got 5"),
        ("job", "", None, "expected Kafka's address"),
        ("job", None, None, "expected Kafka's address as bootstrap"),
        ("job", ["localhost:9092"], None, "expected Kafka's address"),
        ("job", "127.0.0.1:9", {"nonsense": 1}, "nonsense"),
    ],
)
@pytest.mark.parametrize("client", [LiveModel, follow_snapshots, read_predictions])
def test_arguments_are_checked_at_the_door(client: Any, job: Any, bootstrap: Any, settings: Any, text: str) -> None:
    with pytest.raises(UserMistake, match=text):
        client(job, bootstrap=bootstrap, kafka=settings)


def test_it_is_awaited_while_the_loop_goes_on(kafka: Any, job: str) -> None:
    publisher = Publisher(kafka.bootstrap, job)

    async def use() -> None:
        with LiveModel(job, bootstrap=kafka.bootstrap) as model:
            waiting = [asyncio.create_task(model.aready(60)) for _ in range(3)]
            ticks = 0
            while not model.connected:
                await asyncio.sleep(0)
                ticks += 1
            assert ticks and not any(task.done() for task in waiting)
            with pytest.raises(UserMistake, match=r"aready\(0\.01\).*found none yet"):
                await model.aready(0.01)
            await asyncio.to_thread(MODEL.put, publisher, 1)
            await asyncio.gather(*waiting)
            await model.aready()
            assert model.predict(ROW)
            late = LiveModel(job + "-none", bootstrap=kafka.bootstrap)
            task = asyncio.create_task(late.aready(60))
            await asyncio.sleep(0)
            await asyncio.to_thread(late.close)
            with pytest.raises(UserMistake, match="closed"):
                await task

    asyncio.run(use())


def test_one_dict_is_answered_within_100_microseconds(kafka: Any, job: str) -> None:
    MODEL.put(Publisher(kafka.bootstrap, job), 1)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(120)
        took_s = []
        for _ in range(10):
            begun_s = time.thread_time()  # of this thread alone: the machine may be busy
            for _ in range(500):
                model.predict(ROW)
            took_s.append((time.thread_time() - begun_s) / 500)
    assert min(took_s) < 100e-6, "the bench holds the 99th percentile to this"


def test_snapshots_come_as_arrays_by_name(kafka: Any, job: str) -> None:
    publisher = Publisher(kafka.bootstrap, job)
    for version in (1, 2):
        publication = MODEL.put(publisher, version)
    for seen, snapshot in enumerate(follow_snapshots(job, bootstrap=kafka.bootstrap)):
        views = Model(MODEL.spec).views(MODEL.state(snapshot.version))
        assert snapshot.version == 2 + seen and snapshot.manifest.job == job
        for name in ("dense0.weight", "carrier.embedding"):
            assert np.array_equal(snapshot.parameters[name], views[name])
            assert not snapshot.parameters[name].flags.writeable
        assert snapshot.statistics.keys() == {"standardize.numbers", "label.classes"}
        assert snapshot.digest == publication.digest.hex() and snapshot.age_s > 0
        if seen == 2:
            break
        publication = MODEL.put(publisher, 3 + seen)


def test_following_stops_on_request_and_says_when_no_broker_answers(kafka: Any, job: str) -> None:
    assert list(follow_snapshots(job, kafka.bootstrap, stop=lambda: True)) == []
    with pytest.raises(KafkaUnreachable):
        next(follow_snapshots("job", "127.0.0.1:9"))


def send(kafka: Any, topic: str, messages: list[Message]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for message in messages:
        producer.produce(topic, message.value, message.key, headers=list(message.headers), partition=0)  # type: ignore[arg-type]
    assert producer.flush(10) == 0


def test_answers_are_read_as_they_were_written(kafka: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = kafka.fresh_name("answers")
    with pytest.raises(UserMistake, match="found none"):
        next(read_predictions(job, kafka.bootstrap))
    Admin(kafka.bootstrap).ensure(wish for wish in job_topics(job) if wish.key == "predictions")
    assert list(read_predictions(job, kafka.bootstrap, until_end=True)) == []
    ours = (("streamtrain-version", b"3"), ("streamtrain-digest", b"ab" * 32), ("streamtrain-offset", b"41"))
    good = Message(b"a", b'{"prediction":0.5}', (("id", b"7"), *ours))
    error = RowError("$.x", "expected number", "flights.requests[0]@7")
    bad = Message(b"b", json.dumps({"error": vars(error)}).encode(), (*ours, ("streamtrain-error", b"$.x: expected")))
    send(kafka, f"{job}.predictions", [good, bad, Message(b"c", b"no json"), good])
    answers = list(read_predictions(job, kafka.bootstrap, until_end=True))
    assert [(answer.key, answer.prediction, answer.error) for answer in answers] == [
        (b"a", {"prediction": 0.5}, None),
        (b"b", None, error),
        (b"a", {"prediction": 0.5}, None),
    ]
    assert (answers[0].version, answers[0].digest, answers[0].headers) == (3, "ab" * 32, (("id", b"7"),))
    assert (answers[0].offset, answers[0].partition) == (41, None)
    with monkeypatch.context() as earlier:  # what is written after the call is not read
        earlier.setattr(Admin, "last_stable", lambda *_: [2, 0, 0, 0])
        assert len(list(read_predictions(job, kafka.bootstrap, until_end=True))) == 2
    following = read_predictions(job, kafka.bootstrap)
    assert len(list(itertools.islice(following, 3))) == 3
    send(kafka, f"{job}.predictions", [good])
    assert next(following).key == b"a"
