"""ParallelWrapper is `fit` by other names: its settings are the job's, its bits those of `fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from looped import over

import streamtrain
from streamtrain import EarlyStopping, EarlyStoppingTrainer, Job, ParallelWrapper
from streamtrain.compute import averagings
from streamtrain.errors import UserMistake
from tests.e2e.harness import LiveJob, rows
from tests.fitting.example import TABLES, columns, dicts, same_bits, with_train
from tests.fitting.test_fit import written


def test_its_settings_stand_in_the_place_of_the_jobs() -> None:
    job = with_train(prefetch_buffer=100)
    wrapped = ParallelWrapper(job, workers=3, averaging_frequency=2, average_updater=False).job
    train = wrapped.train
    assert (*wrapped.rounds[:2], wrapped.rounds.prefetch_buffer) == (3, 2, 24)
    assert train.report_score_after_averaging and not train.average_optimizer_state and train.batch_rows == 64
    train = ParallelWrapper(TABLES).job.train
    assert (train.workers, train.averaging_frequency, train.average_optimizer_state) == (4, 1, True)
    assert ParallelWrapper(TABLES, averaging_frequency=8).job.rounds.prefetch_buffer == 96
    assert ParallelWrapper(TABLES, prefetch_buffer=9).job.rounds.prefetch_buffer == 9


@pytest.mark.parametrize(
    ("average_updater", "sources"),
    [
        (True, ["arrays", "iterator", "path"]), (False, ["rows", "paths"]),
        *(pytest.param(each, ["arrays", "rows", "iterator", "path", "paths"], marks=pytest.mark.full)
          for each in (True, False)),
    ],
)  # fmt: skip
def test_every_source_gives_the_bits_of_fit(tmp_path: Path, average_updater: bool, sources: list[str]) -> None:
    given = columns(3001)  # the last round is short
    settings = {"workers": 3, "averaging_frequency": 2, "average_optimizer_state": average_updater}
    expected = streamtrain.fit(with_train(**settings), given)
    wrapper = ParallelWrapper(TABLES, 3, None, 2, False, average_updater)
    path = written(tmp_path / "rows.csv", dicts(given))
    by_name = {"arrays": given, "rows": dicts(given), "iterator": iter(dicts(given)), "path": path,
               "paths": [Path(path)]}  # fmt: skip
    for source in sources:
        fitted = wrapper.fit(by_name[source])
        assert same_bits(fitted, expected) and fitted.manifest.rows_seen == 3001, source
    assert not same_bits(expected, streamtrain.fit(TABLES, given))


def test_threads_of_a_worker_change_no_bit() -> None:
    job = with_train(batch_rows=900, threads_per_worker=3)
    wrapper = ParallelWrapper(job, 2, affinity="auto")
    assert (wrapper.job.train.threads_per_worker, wrapper.job.train.affinity) == (3, "auto")
    given, fitted = columns(5000), []
    for threads in (1, 2):
        wrapper = ParallelWrapper(job, 2, threads_per_worker=threads)
        assert wrapper.job.train.threads_per_worker == threads
        fitted.append(wrapper.fit(given))
    assert same_bits(*fitted)
    assert 0 < fitted[0].manifest.metrics["after_averaging"]["loss"] < 1


def test_workers_are_averaged_by_the_setting() -> None:
    given = columns(2000)
    by_mean = ParallelWrapper(TABLES, 2, None, 4, False).fit(given)
    averaging = {"name": "outer_nesterov", "momentum": 0.7}
    expected = streamtrain.fit(with_train(workers=2, averaging_frequency=4, averaging=averaging), given)
    fitted = ParallelWrapper(TABLES, 2, None, 4, False, averaging=averaging).fit(given)
    assert same_bits(fitted, expected) and not same_bits(by_mean, expected)
    by_name = ParallelWrapper(TABLES, averaging="outer_nesterov").job
    assert by_name.model_spec()["averaging"] == averagings.normal("outer_nesterov", {})


@over(
    ("settings", "message"),
    [
        ({"workers": 0}, "settings: train.workers: expected a whole number from 1 to 64, got 0"),
        ({"prefetch_buffer": 3}, "train.prefetch_buffer: expected at least two rounds: .* 8 slots, got 3"),
        ({"averaging": "men"}, 'settings: train.averaging.name: expected one of .*, got "men"; did you mean mean'),
        ({"averaging": {"name": "outer_nesterov", "rat": 1}}, "train.averaging.rat: unknown .*; did you mean rate"),
        ({"threads_per_worker": 65}, "train.threads_per_worker: expected a whole number from 1 to 64, got 65"),
        ({"affinity": "0-1"}, "settings: train.affinity: expected a list for each of 4 workers, .* got 1 in 0-1"),
        ({"average_updater": 3}, "train.average_optimizer_state: expected true or false, got 3"),
    ],
)
def test_mistakes(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        ParallelWrapper(TABLES, **settings)


def test_a_job_is_trained_on_its_records(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, round_interval="off", workers=1)
    wrapper = ParallelWrapper(job.job, workers=2, averaging_frequency=3)
    events: list[Any] = []
    for part in range(2):
        job.produce(2000, seed=part)
        fitted = wrapper.fit(job.job, on_event=events.append)
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    assert fitted.digest == published.digest and same_bits(fitted, published)
    assert fitted.manifest.rows_seen == 4000 and fitted.manifest.workers == 2
    assert fitted.history[-1].rows == 4000 and fitted.history[-1].round == fitted.manifest.round
    assert 0 < fitted.manifest.metrics["after_averaging"]["loss"] < 1
    assert any(event["event"] == "published" for event in events)
    assert fitted.predict({"x1": 1, "x2": 1, "x3": 1, "x4": 1, "colour": "red"})
    job.verified()
    newest = Job.load(job.path, sets=["optimizer.name=sgd"])
    with pytest.raises(UserMistake, match=r"ended with 2: .* does not fit the job: optimizer.name"):
        wrapper.fit(newest)


def test_a_fitted_goes_on_and_goes_live(kafka: Any, tmp_path: Path) -> None:
    job, given = LiveJob(kafka, tmp_path, round_interval="off", workers=1), list(rows(1500))
    fitted = ParallelWrapper(job.job, 2, None, 3).fit(given)
    wrapper = ParallelWrapper(fitted, 2, None, 3)
    assert wrapper.job.model_spec() == fitted.manifest.model_spec and wrapper.job.name == job.name
    other = wrapper.fit(given)
    assert same_bits(other, ParallelWrapper(job.job, 2, None, 3).fit(given, epochs=2))
    for part in range(2):
        job.produce(2000, seed=part)
        live = wrapper.fit(job.job)
        assert live.manifest.rows_seen == 1500 + 2000 * (part + 1), "the second goes on where the first ended"
        assert [of.digest.hex() for of in live.manifest.imported] == [fitted.digest]
        job.verified()
    assert live.origin.cluster == job.admin.cluster_id() and live.origin.topic == f"{job.name}.snapshots"
    with pytest.raises(UserMistake, match=r"expected no snapshot yet, found version .* import into a job of another"):
        ParallelWrapper(other, 2, None, 3).fit(job.job)
    job.produce(500, seed=2)
    assert ParallelWrapper(live, 2, None, 3).fit(job.job).manifest.rows_seen == 6000


def test_what_is_no_source() -> None:
    wrapper = ParallelWrapper(TABLES, workers=1)
    with pytest.raises(UserMistake, match=r"expected a Job with a \[kafka\], got one without; load it with Job.load"):
        wrapper.fit(wrapper.job)
    with_kafka = Job.parse('name = "x"\n[kafka]\nbootstrap.servers = "b:1"\n[columns]\na = {}\ny = { role = "label" }')
    for more in ({"epochs": 2}, {"callbacks": [print]}, {"every_rounds": 1}):
        with pytest.raises(UserMistake, match="expected epochs=1 and no callbacks for records on Kafka"):
            wrapper.fit(with_kafka, **more)  # type: ignore[arg-type]
    with pytest.raises(UserMistake, match=r"got a Job; .* \[train.early_stopping\] ends that"):
        EarlyStoppingTrainer(EarlyStopping(epochs=1), TABLES, with_kafka)
    with pytest.raises(UserMistake, match=r"rows: expected a dict, .* got int"):
        wrapper.fit(5)
    with pytest.raises(UserMistake, match="job: expected a Job, the path of a job file, or its tables, got object"):
        ParallelWrapper(object())  # type: ignore[arg-type]
