"""Following a job's snapshots: whoever has a model keeps it until a good newer one comes, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import copy
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from prediction_bench import Bench, running
from publisher import Publisher, example_manifest
from small_model import SmallModel
from waiting import wait_for

from streamtrain.background import in_background
from streamtrain.clients.live_model import LiveModel
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.columns.served import Served, schema_and_model
from streamtrain.errors import KafkaBroken, KafkaDenied, KafkaSettling, KafkaUnreachable, SnapshotError, UserMistake
from streamtrain.kafka.follower import Follower
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.run.roles import predictor
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import decode, encode
from tests.kafka.conftest import Following, failing

MODEL = SmallModel.make()
HUGE = 2**62
ROW = {"dep_delay": 1, "distance": 2, "hour": 3, "carrier": "AA", "origin": "JFK"}
WHOLE = {"model_spec": MODEL.spec, "schema": MODEL.schema.to_dict()}
MALFORMED: dict[str, dict[str, Any]] = {
    "columns are texts": {"schema": {"columns": ["abc"], "loss": "binary_cross_entropy"}},
    "loss is a list": {"schema": {"columns": [], "loss": []}},
    "no schema": {"schema": {}},
    "no model": {"model_spec": {}},
    "columns are texts, fresh": {"schema": {"columns": ["abc"]}, "untrained": True},
}
JUNK: tuple[Any, ...] = (
    None, [], ["abc"], {}, {"name": 3}, "", "abc", 0, -1, 1 << 62, 2.5, float("nan"), True, [[]], [{}], [None],
)  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtrain.kafka.following.RETRY_S", 0.01)


@pytest.fixture
def bench(kafka: Any, job: str) -> Bench:
    return Bench(kafka.bootstrap, job)


def put_malformed(publisher: Publisher, version: int, **changes: Any) -> None:
    """A snapshot with right digests and no model of a job."""
    publication = publisher.make(version, MODEL.payload(1), **{**WHOLE, "untrained": False, **changes})
    publisher.write(publication.messages)


def put_another_models(publisher: Publisher, version: int) -> None:
    """Whole, with columns and a model, and not that model's arrays."""
    other = SmallModel.make(layers=(9,))
    publisher.write(publisher.make(version, other.payload(1), **WHOLE).messages)


def put_torn(publisher: Publisher, version: int) -> None:
    publisher.put_damaged(version, MODEL.payload(1), lambda messages: messages[-1:])


# by what is wrong with it: writes a snapshot that nobody may take
REFUSED: dict[str, Callable[[Publisher, int], None]] = {
    "another model's arrays": put_another_models, "torn": put_torn,
    **{name: partial(put_malformed, **changes) for name, changes in MALFORMED.items()},
}  # fmt: skip


def test_a_refused_snapshot_keeps_nobody_from_the_next(bench: Bench, publisher: Publisher, caplog: Any) -> None:
    """However high its version. A live model and a predictor keep what they have, and say why once."""
    follow = partial(follow_snapshots, bench.job, bench.bootstrap)
    newest, every = follow(newest_only=True), follow(newest_only=False)
    MODEL.put(publisher, 1)
    assert next(newest).version == next(every).version == 1
    cases = [(name, version) for name in REFUSED for version in (None, HUGE)]
    with LiveModel(bench.job, bench.bootstrap) as model, running(bench.config()) as counters:
        model.wait_ready()
        wait_for(lambda: counters["version"] == 1)
        for at, (name, version) in enumerate(cases):
            kept = model.version
            caplog.clear()
            REFUSED[name](publisher, version or kept + 1)
            wait_for(lambda kept=kept: caplog.text.count(f"keeping snapshot {kept}") >= 2)  # of both
            assert model.version == counters["version"] == kept and model.error is not None, name
            assert model.predict(ROW)
            if name in MALFORMED:
                words = f"snapshot {kept + 1} of {bench.job}: expected the columns and model"
                assert ("expected a version and a run that a trainer" if version else words) in caplog.text, name
            bench.ask(ROW, str(at))
            bench.flush()
            wait_for(lambda at=at: counters["requests"] == at + 1)
            assert caplog.text.count(f"keeping snapshot {kept}") == 2 and "Traceback" not in caplog.text, name
            good = kept + 2
            MODEL.put(publisher, good)
            wait_for(lambda good=good: model.version == counters["version"] == good)
            assert next(newest).version == next(every).version == good, name
            assert bench.answers()[str(at)].version == kept, name


def test_a_refused_snapshot_keeps_nobody_from_starting_on_what_came_after_it(kafka: Any) -> None:
    for refuse in REFUSED.values():
        job = kafka.fresh_name("huge")
        publisher = Publisher(kafka.bootstrap, job)
        refuse(publisher, HUGE)
        MODEL.put(publisher, 2)
        assert next(follow_snapshots(job, kafka.bootstrap)).version == 2


def test_who_starts_on_a_refused_snapshot_waits_or_ends(bench: Bench, publisher: Publisher, caplog: Any) -> None:
    """A predictor waits for the next; a bounded run ends, with exit code 1, also where nothing is wrong but a chunk."""
    put_malformed(publisher, 1, **MALFORMED["columns are texts"])
    for config in (bench.config(until_end=True), bench.config(snapshot=1)):
        with pytest.raises(SnapshotError, match="expected the columns and model of a job") as error:
            predictor.answer(config, threading.Event())
        assert error.value.exit_code == 1
    bench.ask(ROW, "waits")
    bench.flush()
    with running(bench.config()) as counters:
        wait_for(lambda: "waiting for the next" in caplog.text)
        MODEL.put(publisher, 2)
        wait_for(lambda: counters["requests"] == 1)
    assert bench.answers()["waits"].version == 2
    publisher.put_damaged(3, MODEL.payload(1), lambda messages: messages[1:])
    with pytest.raises(SnapshotError, match="missing"):
        predictor.answer(bench.config(until_end=True), threading.Event())


@pytest.mark.parametrize("versions", [(7, 2), (2, 7), (7, 7, 2), (3, 7, 2)])
def test_versions_that_wait_together_are_checked_before_they_pass_over_others(
    topic: SnapshotTopic, publisher: Publisher, versions: tuple[int, ...]
) -> None:
    """Uses a `prepare` that raises a ValueError for version 7."""

    def seven_is_bad(stored: Stored) -> Stored:
        if stored.manifest.version == 7:
            raise ValueError("seven")
        return stored

    publisher.put(1, b"first")
    following = Following(topic, newest_only=True, prepare=seven_is_bad)
    assert following.versions == [1]
    publisher.write(message for version in versions for message in publisher.make(version, b"x").messages)
    following.until(lambda: len(following.seen) == 2 and len(following.rejected) == len(versions) - 1)
    assert following.versions[1] == next(version for version in versions if version != 7)
    assert sum("seven" in text for text in following.rejected) == versions.count(7)
    too_low = sum("expected a version above 3, got 2" in text for text in following.rejected)
    assert too_low == (versions == (3, 7, 2))


def test_a_good_one_of_a_higher_version_keeps_a_start_from_a_lower_one(
    topic: SnapshotTopic, publisher: Publisher
) -> None:
    """Versions a reader sees never go down, whoever it was that saw them."""
    MODEL.put(publisher, 900)
    MODEL.put(publisher, 2, kept=())
    following = Following(topic)
    assert following.seen == [] and len(following.rejected) == 1
    assert "expected a version above 900" in following.rejected[0]


@pytest.mark.parametrize("newest_only", [True, False])
@pytest.mark.parametrize("later", [(), (3, 4)], ids=["the last", "two follow"])
def test_a_snapshot_that_could_not_be_fetched_is_fetched_again(
    topic: SnapshotTopic,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    newest_only: bool,
    later: tuple[int, ...],
) -> None:
    """No other may ever come: the trainer's last. Who follows all of them gets it before those that come after it."""
    MODEL.put(publisher, 1)
    following = Following(topic, newest_only)
    assert following.versions == [1]
    failures = failing(monkeypatch, topic, "load", KafkaUnreachable("away"), KafkaUnreachable("away"))
    monkeypatch.setattr(following.follower, "_keep", lambda read: None)  # as where they are too many to keep
    for version in (2, *later):
        MODEL.put(publisher, version)
    following.until(lambda: following.versions[-1] == (2, *later)[-1])
    assert not failures and not following.rejected
    assert following.versions == (sorted(following.versions) if newest_only else [1, 2, *later])


def test_a_live_model_and_a_predictor_keep_their_model_and_follow_on(
    bench: Bench, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any failure; a broken client is made anew."""
    MODEL.put(publisher, 1)
    with running(bench.config()) as counters:
        wait_for(lambda: counters["version"] == 1)
        failures = failing(monkeypatch, Follower, "poll")
        for version, error in enumerate([KafkaBroken("fatal"), KafkaDenied("no right"), KafkaUnreachable("away")], 2):
            failures.append(error)
            wait_for(lambda: not failures)
            MODEL.put(publisher, version)
            wait_for(lambda version=version: counters["version"] == version)
    with LiveModel(bench.job, bench.bootstrap) as model:
        model.wait_ready(120)
        renewals = model._topic.renewals
        for version, error in enumerate([KafkaBroken("fatal"), OSError("of any kind")], 5):
            failures.append(error)
            wait_for(lambda: not failures)
            MODEL.put(publisher, version)
            wait_for(lambda version=version: model.version == version)
            assert model._topic.renewals == renewals + 1


def test_who_has_no_model_waits_for_what_passes(
    bench: Bench, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    MODEL.put(publisher, 1)
    failures = failing(monkeypatch, SnapshotTopic, "newest_manifest")
    failures += [KafkaSettling("no leader")] * 2
    assert next(follow_snapshots(bench.job, bootstrap=bench.bootstrap)).version == 1 and not failures
    for error in (KafkaSettling("no leader"), KafkaBroken("fatal")):
        failures += [error, error]
        with running(bench.config()) as counters:
            wait_for(lambda counters=counters: counters["version"] == 1)
        assert not failures


def test_a_snapshot_that_is_followed_anew_is_made_ready_once(
    bench: Bench, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    MODEL.put(publisher, 1, untrained=True)
    prepared: list[int] = []
    make = LiveModel._prepared

    def counted(self: LiveModel, stored: Any) -> Any:
        prepared.append(stored.manifest.version)
        return make(self, stored)

    monkeypatch.setattr(LiveModel, "_prepared", counted)
    failures = failing(monkeypatch, Follower, "poll", KafkaSettling("no leader"))
    with LiveModel(bench.job, bench.bootstrap) as model:
        wait_for(lambda: not failures and model.connected)
        MODEL.put(publisher, 2)
        model.wait_ready(120)
    assert prepared == [1, 2]


def test_who_stays_at_a_version_or_at_the_best_one(bench: Bench, publisher: Publisher) -> None:
    """Newer ones leave both where they are. Which is the best goes back where the newest manifest says so."""
    follow, live = partial(follow_snapshots, bench.job, bench.bootstrap), partial(LiveModel, bench.job, bench.bootstrap)
    publisher.keep = 12
    MODEL.put(publisher, 1, untrained=True)
    for choice, text in ((2, "a version it holds (1), got 2"), ("best", "best by train.early_stopping, found none")):
        with pytest.raises(UserMistake, match=re.escape(text)):
            next(follow(version=choice))
        with pytest.raises(UserMistake, match=re.escape(text)):
            predictor.answer(bench.config(snapshot=choice), threading.Event())
        with live(version=choice) as absent:
            with pytest.raises(UserMistake, match=re.escape(text)):
                absent.wait_ready(3600)
            with pytest.raises(UserMistake, match=re.escape(text)):
                asyncio.run(absent.aready(3600))
    MODEL.put(publisher, 2, best=2)
    bests, seen = follow(version="best"), []
    with (
        live(version=1) as first, live(version=2) as second, live(version="best") as best, live() as newest,
        running(bench.config(snapshot="best")) as counters,
    ):  # fmt: skip
        for model in (first, second, best):
            model.wait_ready(240)
        assert (first.stays_at, best.stays_at, newest.stays_at) == (1, "best", None)
        # version: the best one then; 5 is torn, and says that it is itself
        for version, of in ((3, 2), (4, 4), (5, 5), (6, 4), (7, 2), (8, 8), (9, None)):
            if version == 5:
                publisher.write([*publisher.make(5, MODEL.payload(5), **WHOLE, best=5).messages][1:])
                continue
            MODEL.put(publisher, version, best=of)
            wait_for(lambda version=version: newest.version == version)
            at = of or 8
            wait_for(lambda at=at: best.version == counters["version"] == at)
            if at not in seen[-1:]:
                seen.append(next(bests).version)
            assert (first.version, second.version, seen[-1]) == (1, 2, at)
        assert seen == [2, 4, 2, 8] and best.predict(ROW) != second.predict(ROW)
    assert [snapshot.version for snapshot in follow(version=9)] == [9]


def test_a_live_model_that_may_not_read_says_it_once(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    looks: list[int] = []

    def denied(self: Follower[Any]) -> Any:
        looks.append(1)
        raise KafkaDenied("snapshots: not authorised")

    monkeypatch.setattr(Follower, "start", denied)
    with caplog.at_level(logging.INFO), LiveModel("job", bootstrap="127.0.0.1:9") as model:
        wait_for(lambda: len(looks) > 5)
        assert isinstance(model.error, KafkaDenied)
    ours = [record for record in caplog.records if "not authorised" in record.getMessage()]
    assert len(ours) == 1 and ours[0].exc_info is None


def test_rows_of_a_call_are_predicted_by_one_snapshot(bench: Bench, publisher: Publisher) -> None:
    """However many rows the call has and however many snapshots come."""
    columns = {"dep_delay": {"standardize": True}, "distance": {}, "hour": {}, "late": {"role": "label"}}
    small, row = SmallModel.make(columns), {"dep_delay": 3.5, "distance": 7, "hour": 2}
    digests = {1: small.put(publisher, 1).digest.hex()}
    rows = {name: np.full(20_000, value) for name, value in row.items()}
    seen: dict[int, float] = {}
    with LiveModel(bench.job, bootstrap=bench.bootstrap) as live:
        live.wait_ready(60)
        done = threading.Event()

        def predict() -> None:
            while not done.is_set():
                answer = live.answer(rows)
                (value,) = {each["prediction"] for each in answer.values}
                assert seen.setdefault(answer.version, value) == value
                assert answer.digest == digests[answer.version] and answer.age_s > 0

        predicting = [in_background(predict, name=f"predict {number}") for number in range(3)]
        for version in range(2, 16):
            changes = {"model_spec": small.spec, "schema": small.schema.to_dict()}
            digests[version] = publisher.make(version, small.payload(version), **changes).digest.hex()
            small.put(publisher, version)
        while live.version != 15:
            live.predict(row)
        done.set()
        for each in predicting:
            each.result(60)
        assert len({live.predict(row)["prediction"], *seen.values()}) > 2


def altered(given: Any) -> Iterator[Any]:
    """`given` with one part of it, at any depth, left out or replaced by each piece of junk."""
    yield from JUNK
    if isinstance(given, Mapping):
        for name in given:
            yield {other: value for other, value in given.items() if other != name}
            for value in altered(given[name]):
                yield {**given, name: value}
    elif isinstance(given, list):
        for at in range(len(given)):
            yield [*given[:at], *given[at + 1 :]]
            for value in altered(given[at]):
                yield [*given[:at], value, *given[at + 1 :]]


def test_whatever_a_manifest_holds_it_makes_a_scorer_or_a_snapshot_error() -> None:
    payload, refused, scorer_count = MODEL.payload(3), 0, 0
    for case in (
        {**WHOLE, name: value} for name in WHOLE for value in altered(WHOLE[name]) if isinstance(value, Mapping)
    ):
        manifest = decode(encode(example_manifest(3, shelf="s/0003", **copy.deepcopy(case))))
        try:
            served = Served.of(manifest, b"d" * 32, payload)
            served.request_scorer("json", rows=256).score("asked", [b"[1,2,3,4]"])
            scorer_count += 1
        except SnapshotError:
            refused += 1
    assert refused > 500 and scorer_count > 10


def test_columns_and_model_that_disagree_are_refused() -> None:
    smaller = MODEL.schema.to_dict()
    smaller["columns"] = [{**each, "buckets": 8} if each.get("buckets") else each for each in smaller["columns"]]
    with pytest.raises(SnapshotError, match="expected the model's input to be that of its columns"):
        schema_and_model(example_manifest(3, model_spec=MODEL.spec, schema=smaller))
    spec = {**MODEL.spec, "loss": "mean_squared_error"}
    with pytest.raises(SnapshotError, match="expected the model's loss"):
        schema_and_model(example_manifest(3, model_spec=spec, schema=MODEL.schema.to_dict()))
