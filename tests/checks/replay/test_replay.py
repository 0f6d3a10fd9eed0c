"""Replay finds where a round log differs from its rounds, and names records that it can no longer read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from streamtrain.build import build_digest
from streamtrain.checks.replay.replayed_state import LineageState
from streamtrain.checks.replay.reread_records import Readers
from streamtrain.errors import CheckFailed
from streamtrain.kafka.round_logs import round_logs
from streamtrain.record_sources.source_kind import Given, RecordsGone, Topic
from streamtrain.topics.chunks import Stored
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.terms import Terms
from streamtrain.topics.topic import sha256
from tests.e2e import threaded
from tests.e2e.harness import LiveJob
from tests.e2e.test_gaps import delete, make_again, remove

Change = Callable[[RoundLog], RoundLog]


def readers(live: LiveJob) -> Readers:
    topic_id = live.admin.topic_ids([live.records])[live.records]
    return Readers(Given(Topic(live.records, topic_id or "", ()), kafka=live.job.kafka_consumer()))


@dataclass(frozen=True)
class Trained:
    """A small job: its first snapshot, the log that leads to the second, and that."""

    live: LiveJob
    start: Stored
    log: RoundLog
    second: Stored

    def reader(self) -> Readers:
        return readers(self.live)


@pytest.fixture(scope="module")
def trained(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    live = LiveJob(kafka, tmp_path_factory.mktemp("job"), partitions=1, publish_interval="1h")
    live.produce(700)
    threaded.rows_after(live.path)
    with live.topic() as topic:
        start, second = topic.version(1), topic.version(2)
    ((log,),) = round_logs(live.job.kafka_consumer(), f"{live.name}.rounds")
    yield Trained(live, start, log, second)


def differences(trained: Trained, log: RoundLog) -> list[str]:
    with trained.reader() as reader:
        return LineageState(trained.start, reader).follow(RoundLogs((log,)), trained.second).differences


def of_slots(field: str, value: float) -> Change:
    def change(log: RoundLog) -> RoundLog:
        slots = log.slots.copy()
        slots[field][3] = value
        return replace(log, slots=slots)

    return change


def of_metrics(span: str) -> Change:
    return lambda log: replace(log, metrics={**log.metrics, span: {**log.metrics[span], "log_loss": 0.01}})


def of_log(**changes: Any) -> Change:
    return lambda log: replace(log, **changes)


def of_terms(**changes: Any) -> Change:
    return lambda log: replace(log, terms=tuple(replace(terms, **changes) for terms in log.terms))


def test_the_log_as_it_is(trained: Trained) -> None:
    assert differences(trained, trained.log) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *((of_slots(*change), "slot 3: loss") for change in (("loss_sum", 1.0), ("weight_sum", 1.0), ("rejected", 1))),
        (of_slots("rejected", 2), "parameters"),
        (of_slots("dead", 3), "counts"),
        (of_metrics("total"), "metrics.total"),
        (of_metrics("window"), "metrics.window"),
        (of_terms(learning_rate={"name": "constant", "rate": 1e-2}), "parameters"),
        (of_terms(optimizer={"name": "adam", "beta1": 0.5}), "parameters"),
        (of_log(digest=sha256(b"another")), "digest"),
        (of_log(created_ms=1), "chain of round logs"),
        (of_log(lineage="ab" * 16), "chain of round logs"),
    ],
)
def test_a_log_that_differs_is_found(trained: Trained, change: Change, expected: str) -> None:
    assert any(expected in difference for difference in differences(trained, change(trained.log)))


def test_parameters_and_trainer_state_are_compared(trained: Trained) -> None:
    with trained.reader() as reader:
        other = replace(trained.second, model=trained.start.model, trainer=trained.start.trainer)
        found = LineageState(trained.start, reader).follow(RoundLogs((trained.log,)), other).differences
    assert [difference.partition(":")[0] for difference in found] == ["parameters", "trainer state"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_terms(columns_digest=sha256(b"")), "columns"),
        (of_terms(model_digest=sha256(b"")), "model"),
        (of_terms(format={"name": "msgpack", "strict": True}), "records.strict: unknown setting of msgpack"),
        (of_terms(learning_rate={"name": "cosine"}), "learning rate"),
        (lambda log: replace(log, rounds=log.rounds[:0]), "expected a round"),
        (of_terms(topic_id="another"), "made again"),
    ],
)
def test_a_log_that_cannot_be_followed_is_refused(trained: Trained, change: Change, message: str) -> None:
    with pytest.raises(RecordsGone if message == "made again" else CheckFailed, match=message):
        differences(trained, change(trained.log))


def test_another_build_is_noted(trained: Trained) -> None:
    with trained.reader() as reader:
        state = LineageState(trained.start, reader)
        state.follow(RoundLogs((of_terms(build="0.0.9+abc")(trained.log),)), None)
    assert state.notes == [f"trained by build 0.0.9+abc, this is {build_digest()}"]


def test_terms_that_change_within_a_log_are_kept_to(trained: Trained) -> None:
    """Cut in two at a round, the second half under terms of the same meaning: the same bits."""
    first = trained.log.terms[0]
    middle = int(trained.log.rounds["round"][len(trained.log.rounds) // 2])
    roomier = replace(first.slot, row_capacity=2 * first.slot.row_capacity)
    second: Terms = replace(first, first_round=middle, slot=roomier)
    assert middle > first.first_round
    found = differences(trained, replace(trained.log, terms=(first, second)))
    assert [difference.partition(":")[0] for difference in found] == ["chain of round logs"]


def test_a_publication_that_spans_many_windows_has_each_of_them(kafka: Any, tmp_path: Path) -> None:
    """Windows that close at publications hold all of a fast stream's rows; a start that begins one anew loses its rows.
    Replay must compare the figures and where windows close."""
    live = LiveJob(kafka, tmp_path, partitions=1, publish_interval="1h")
    large = "train.batch_rows=1024"  # a window is larger then, and is more than one where it is not
    for rows, *sets in ((34_000,), (9_000,), (20_000, large), (500,)):
        live.produce(rows, seed=rows)
        threaded.rows_after(live.path, *sets)
    logs = [logs.first for logs in round_logs(live.job.kafka_consumer(), f"{live.name}.rounds")]
    assert [int(log.rounds["closed_window"].sum()) for log in logs] == [3, 1, 0, 1]
    round_rows = logs[0].terms[0].round_slots * logs[0].terms[0].slot.row_capacity
    *windows, last = [window["rows"] for log in logs for window in log.metrics["windows"]]
    least = max(10_000, 4 * round_rows)
    assert all(least <= rows < least + round_rows for rows in windows) and last > 20_000, (windows, last)
    assert all(log.metrics["window"]["log_loss"] == log.metrics["windows"][-1]["log_loss"] for log in logs[:2])
    live.verified()
    live.replayed(1)
    rounds, (first, *others) = logs[0].rounds.copy(), logs[0].metrics["windows"]
    rounds["closed_window"][rounds["closed_window"].argmax()] = 0
    rounds["closed_window"][3] = 1
    windows = [{**first, "log_loss": 0.01}, *others]
    closed = "round 3: the round log closes a window that has not enough rows"
    for change, expected in (
        (of_log(rounds=rounds), [closed, "metrics.windows"]),
        (of_log(metrics={**logs[0].metrics, "windows": windows}), ["metrics.windows"]),
    ):
        with live.topic() as topic, readers(live) as reader:
            found = LineageState(topic.version(1), reader).follow(RoundLogs((change(logs[0]),)), None).differences
        assert [word for word in expected if not any(word in difference for difference in found)] == [], found


def test_over_a_topic_that_was_made_again(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=1)
    live.produce(300)
    threaded.rows_after(live.path)
    before = live.newest().manifest.version
    delete(live)
    make_again(live)
    live.produce(300, seed=1)
    threaded.rows_after(live.path, accept_gap=True)
    live.replayed(before)
    done = live.here("replay", "--from", "1")
    assert done.returncode == 1 and "was deleted and made again" in done.stderr


def test_over_records_that_retention_has_removed(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=1)
    live.produce(300)
    threaded.rows_after(live.path)
    remove(live, 100)
    done = live.here("replay", "--from", "1")
    assert done.returncode == 1 and "begins at offset 100" in done.stderr
