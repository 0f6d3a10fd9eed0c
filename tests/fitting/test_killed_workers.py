"""A worker that is killed costs nothing: the bits are those of a run in which all live."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from streamtrain import EarlyStopping, EarlyStoppingParallelTrainer, ParallelWrapper, fit
from tests.fitting import test_heads
from tests.fitting.example import TABLES, columns, dicts, same_bits, with_train
from tests.fitting.left import Deaths, kill_a_worker, killing_a_worker

LAYERS = [{"dense": 16, "activation": "relu"}, {"dropout": 0.2}]
DROPOUT = {**TABLES, "model": {**TABLES["model"], "layers": LAYERS}}
# how it is trained, on which rows, the number of the row before which a worker dies, which worker
BY_A_ROW: dict[str, tuple[Any, Any, int, int]] = {
    "fit": (partial(fit, TABLES), columns(30_000), 20_000, 0),
    "dropout, whose numbers go by seed, round and place in it": (partial(fit, DROPOUT), columns(6_000), 4_500, 0),
    "ParallelWrapper": (ParallelWrapper(TABLES, averaging_frequency=2).fit, columns(20_000), 15_000, 2),
}
# the job, its rows, further arguments, at which event of training a worker dies, which worker
BY_A_CALLBACK: dict[str, tuple[Any, Any, Any, Any, int]] = {
    "epochs": (TABLES, columns(4_000), {"epochs": 5, "every_epochs": 2}, lambda moment: moment.epoch == 2, 1),
    "heads": (
        test_heads.TABLES, test_heads.columns(8_000), {"every_rounds": 20}, lambda moment: moment.round == 59, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_A_ROW)
def test_while_rows_come(name: str) -> None:
    train, rows, at, worker = BY_A_ROW[name]
    died = Deaths()
    fitted = train(killing_a_worker(dicts(rows), at, worker), on_event=died)
    assert died[0] == "SIGKILL" and same_bits(fitted, train(rows))


@pytest.mark.parametrize("name", BY_A_CALLBACK)
def test_from_a_callback(name: str) -> None:
    job, rows, more, when, worker = BY_A_CALLBACK[name]
    died = Deaths()
    callback = lambda moment: kill_a_worker(worker) if when(moment) else None  # noqa: E731
    fitted = fit(job, rows, callbacks=[callback], on_event=died, **more)
    assert died[0] == "SIGKILL" and same_bits(fitted, fit(job, rows, **more))


def test_early_stopping_ends_at_the_same_round() -> None:
    stopping = EarlyStopping(no_improvement=2, least_improvement=0.02, every_rounds=20)
    trainer = EarlyStoppingParallelTrainer(stopping, TABLES, columns(3000), workers=2, averaging_frequency=3)
    died, one = Deaths(), trainer.fit()
    other = trainer.fit(callbacks=[lambda moment: kill_a_worker() if moment.round == 59 else None], on_event=died)
    assert died[0] == "SIGKILL" and one.reason == "no_improvement"
    assert [each.score for each in one.evaluations] == [each.score for each in other.evaluations]
    assert same_bits(one.best_model, other.best_model) and same_bits(one.model, other.model)


def test_dropout_goes_by_the_seed_and_predictions_have_none() -> None:
    rows, fresh = columns(6_000), columns(500, seed=9)
    fitted = fit(DROPOUT, rows)
    assert not same_bits(fitted, fit({**DROPOUT, "train": with_train(seed=2)["train"]}, rows))
    answers = fitted.predict(fresh)
    assert answers == fitted.predict(fresh)
    found = np.array([answer["prediction"] > 0.5 for answer in answers])
    assert (found == fresh["y"].astype(bool)).mean() > 0.9
