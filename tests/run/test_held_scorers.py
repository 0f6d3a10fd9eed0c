"""A predictor that holds several snapshots at once on a real broker: each request is answered by one of them, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prediction_bench import PARTITIONS, Bench
from served_model import ServedModel
from waiting import wait_for

from streamtrain import _native
from streamtrain.columns.served import Served
from streamtrain.kafka import library
from streamtrain.run.roles import predictor
from streamtrain.topics.predictions import Answer
from tests.run.conftest import DELIVERIES

HEADER = "streamtrain-variant"
NAMES = ("first", "second", "wider")
ROW = [1.5, -2.0]
Scorers = dict[str, _native.RequestScorer]


def scorers(bench: Bench, model: ServedModel, format: Any = "json") -> Scorers:
    """Makes scorers of three snapshots, the third of another model; two may have pages in common."""
    wider = ServedModel(bench.bootstrap, f"{bench.job}.wider", layers=[{"dense": 4, "activation": "relu"}])
    made, before = {}, None
    for name, of in zip(NAMES, (model, model, wider), strict=True):
        published = of.put()
        before = Served.of(published.manifest, published.digest, of.model.payload(of.version), before)
        made[name] = before.request_scorer(format, 256)
    return made


def answered_by(held: Scorers, name: str, row: list[float] = ROW) -> Any:
    [(body, *_)] = held[name].score("asked", [json.dumps(row).encode()])
    return json.loads(body)


@contextmanager
def native(bench: Bench, delivery: str, until_end: bool = True) -> Iterator[_native.Predictor]:
    library.load()
    config = bench.config(delivery)
    made = _native.Predictor(
        list(predictor.consumer_settings(config).items()), list(predictor.producer_settings(config).items()),
        bench.requests, bench.predictions, exactly_once=delivery == "exactly_once", until_end=until_end,
    )  # fmt: skip
    try:
        yield made
    finally:
        made.close(30_000)


def to_its_end(running: _native.Predictor) -> None:
    wait_for(lambda: running.run(100))
    assert running.finish(30_000)


def answered_once(bench: Bench, count: int) -> dict[str, Answer]:
    """Returns all answers by key, once they can be read: a commit's answer comes before its markers are written."""
    wait_for(lambda: bench.counts().total() >= count)
    counts = bench.counts()
    assert len(counts) == count and set(counts.values()) == {1}
    return bench.answers()


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_each_request_is_answered_by_the_one_it_names(bench: Bench, model: ServedModel, delivery: str) -> None:
    held = scorers(bench, model)
    expected = {name: answered_by(held, name) for name in NAMES}
    assert len({str(each) for each in expected.values()}) == 3
    names = (*NAMES, None, "another")
    for at in range(300):
        name = names[at % 5]
        bench.ask(ROW, str(at), [] if name is None else [(HEADER, name.encode())], at % PARTITIONS)
    bench.flush()
    with native(bench, delivery) as running:
        running.serve(list(held.items()))
        to_its_end(running)
        assert running.counters()["requests"] == running.counters()["rows"] == 300
    answers = answered_once(bench, 300)
    for at in range(300):
        name, answer = names[at % 5], answers[str(at)]
        by = name if name in NAMES else "first"
        assert (answer.prediction, answer.version) == (expected[by], held[by].version)
        assert HEADER not in dict(answer.headers)


def test_what_one_has_no_room_for_is_answered_after_all_before_it(bench: Bench, model: ServedModel) -> None:
    """A scorer writes 16 MB at once, about, of which each bad row takes some 130 bytes: the others' answers behind that
    come again."""
    held, rows = scorers(bench, model), 5000
    for at in range(24):
        for name in ("first", "second"):
            bench.ask([[]] * rows, f"{name} {at}", [(HEADER, name.encode())])
        bench.ask(ROW, f"wider {at}", [(HEADER, b"wider")])
    bench.flush()
    with native(bench, "exactly_once") as running:
        running.serve(list(held.items()))
        to_its_end(running)
        batches = running.counters()["batches"]
    answers = answered_once(bench, 72)
    assert batches >= 2
    for key, answer in answers.items():
        name = key.partition(" ")[0]
        assert answer.version == held[name].version
        assert answer.prediction == answered_by(held, name) if name == "wider" else answer.error is not None


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_what_waits_for_a_schema_holds_its_partition_alone(bench: Bench, model: ServedModel, delivery: str) -> None:
    known = {"1": ("{}", "")}
    held = scorers(bench, model, {"name": "json", "frame": "registry", "schemas": known.get})

    def ask(key: str, name: str, schema: int, partition: int) -> None:
        value = b"\0" + schema.to_bytes(4, "big") + json.dumps(ROW).encode()
        bench.ask(value, key, [(HEADER, name.encode())], partition)

    for at in range(20):
        name, other = NAMES[at % 3], NAMES[(at + 1) % 3]
        ask(f"before {at}", name, 1, 0)
        ask(f"goes on {at}", other, 1, 1)
    ask("waits", "second", 2, 0)
    for at in range(20):
        ask(f"behind {at}", NAMES[at % 3], 1, 0)
        ask(f"goes on too {at}", NAMES[at % 3], 1, 1)
    bench.flush()
    with native(bench, delivery) as running:
        running.serve(list(held.items()))
        wait_for(lambda: running.run(50) or (running.counters()["requests"] >= 60 and running.counters()["waiting"]))
        assert running.counters()["requests"] == 60 and running.finish(30_000)
        assert not any(key.startswith(("waits", "behind")) for key in answered_once(bench, 60))
        known["2"] = ("{}", "")
        running.look_again()
        to_its_end(running)
    assert answered_once(bench, 81)["waits"].version == held["second"].version


def test_all_are_taken_over_at_once(bench: Bench, model: ServedModel) -> None:
    """While it answers: what was answered by a set is followed by nothing of the one before."""
    held = scorers(bench, model)
    with native(bench, "exactly_once", until_end=False) as running:
        running.serve([("a", held["first"]), ("b", held["second"])])
        for turn, (a, b) in enumerate((("first", "second"), ("second", "wider"))):
            if turn:
                running.serve([("a", held[a]), ("b", held[b])])
            for at in range(40):
                bench.ask(ROW, f"{turn} {at}", [(HEADER, b"b")] if at % 2 else [])
            bench.flush()
            wait_for(lambda turn=turn: running.run(50) or running.counters()["requests"] >= 40 * (turn + 1))
    answers = answered_once(bench, 80)
    expected = {(turn, odd): answered_by(held, name) for (turn, odd), name in
                {(0, 0): "first", (0, 1): "second", (1, 0): "second", (1, 1): "wider"}.items()}  # fmt: skip
    for key, answer in answers.items():
        turn, at = map(int, key.split())
        assert answer.prediction == expected[turn, at % 2]


def test_a_name_and_a_scorer_are_held_once(bench: Bench, model: ServedModel) -> None:
    held = scorers(bench, model)
    with native(bench, "exactly_once") as running:
        for wrong in ([], [("a", held["first"]), ("a", held["second"])], [("a", held["first"]), ("b", held["first"])]):
            with pytest.raises(ValueError, match="scorer"):
                running.serve(wrong)
