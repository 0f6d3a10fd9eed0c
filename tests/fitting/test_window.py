"""Windows in memory: the optimum that others find, the same in every run, and the interface of a fit."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain import _native, fit_window
from streamtrain.columns.row_plan import Lists
from streamtrain.errors import UserMistake
from streamtrain.fitting.minimizers import MINIMIZERS, WindowStep, minimize
from streamtrain.job.mistakes import JobMistakes
from tests.bench.learning_streams import DATA
from tests.fitting.example import columns, with_train

BAR = 1e-6  # of the objective, relative
WORDS = ["red", "green", "blue", "old", "new", "large", "small"]


def build_job(rows: int, classes: int = 4, seed: int = 5) -> tuple[dict[str, Any], dict[str, Any]]:
    """A job of numbers and texts, its rows, whose classes depend on both, and some weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 2, (rows, 5))
    texts = [rng.choice(WORDS, rng.integers(0, 6)) for _ in range(rows)]
    words = np.array([[word in text for word in WORDS] for text in texts])
    z = (x - 3) @ rng.normal(size=(5, classes)) / 2 + words @ rng.normal(size=(len(WORDS), classes))
    label = (z + rng.gumbel(size=z.shape)).argmax(1)
    job = {
        "columns": {
            "x{0..4}": {"standardize": True}, "w": {"role": "weight"},
            "said": {"kind": "text", "buckets": 64, "missing": ""},
            "y": {"role": "label", "classes": [str(each) for each in range(classes)]},
        },
        "model": {"loss": "softmax_cross_entropy"}, "optimizer": {"l2": 1e-3},
    }  # fmt: skip
    columns = {f"x{at}": x[:, at] for at in range(5)}
    return job, {**columns, "said": [" ".join(text) for text in texts], "w": rng.uniform(0.5, 2, rows),
                 "y": label.astype(str)}  # fmt: skip


def least(job: streamtrain.Job, rows: Any, fitted: Any, l2: float) -> float:
    """scikit-learn's value of the objective, over what the job's plan makes of rows and the model's standardization."""
    sparse, linear_model = pytest.importorskip("scipy.sparse"), pytest.importorskip("sklearn.linear_model")
    metrics = pytest.importorskip("sklearn.metrics")
    plan = job.plan()
    found = plan.transform(rows) if isinstance(rows, dict) or hasattr(rows, "columns") else plan.decode(rows)
    label = next(np.asarray(found.pop(name)).astype(int) for name in ("y", "label", "income") if name in found)
    weight = np.asarray(found.pop("w", np.ones(len(label))), np.float64)
    numbers = [np.asarray(cells, np.float64) for cells in found.values() if not isinstance(cells, Lists)]
    parts = []
    if numbers:
        count, mean, squares = fitted.statistics["standardize.numbers"].T[:3]
        parts.append(np.clip((np.stack(numbers, 1) - mean) / np.sqrt(squares / count), -8, 8))
    for name, cells in found.items():
        if isinstance(cells, Lists) and not name.endswith(".scale"):
            scale = found[f"{name}.scale"].values if f"{name}.scale" in found else np.ones(len(cells.values))
            shape = len(label), len(fitted.parameters[f"{name}.embedding"])
            parts.append(sparse.csr_matrix((scale.astype(np.float64), cells.values, cells.offsets), shape))
    x, l2 = sparse.hstack(parts).tocsr(), l2 * weight.sum()
    classes = len(fitted.parameters["output.bias"])
    # of two classes it has one logit, which our two share
    l2 /= 2 if classes == 2 else 1
    theirs = linear_model.LogisticRegression(C=1 / l2, tol=1e-10, max_iter=20_000).fit(x, label, weight)
    loss = metrics.log_loss(label, theirs.predict_proba(x), sample_weight=weight)
    return float(loss + l2 / weight.sum() / 2 * (theirs.coef_**2).sum())


@pytest.mark.parametrize("optimizer", MINIMIZERS)
def test_maximum_entropy_reaches_scikit_learns_objective(optimizer: str) -> None:
    job, rows = build_job(2000)
    fitted = fit_window(job, rows, optimizer=optimizer)
    assert fitted.value == pytest.approx(least(streamtrain.Job.from_tables(job), rows, fitted, 1e-3), rel=BAR)
    assert fitted.converged and fitted.reason in ("gradient_tolerance", "value_tolerance")
    assert fitted.stopped.startswith(fitted.reason)


def real(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip("the real data is not there")
    return DATA / name


@pytest.mark.full
def test_of_real_people() -> None:
    texts = ("type_employer", "education", "marital", "occupation", "relationship", "race", "sex", "country")
    tables = {
        "columns": {
            **{name: {"standardize": True} for name in ("age", "fnlwgt", "education_num", "hr_per_week")},
            "capital_{gain,loss}": {"standardize": True},
            **{name: {"kind": "text", "buckets": 256, "missing": ""} for name in texts},
            "income": {"role": "label", "classes": ["<=50K", ">50K"]},
        },
        "records": {"format": "csv"},
        "model": {"loss": "softmax_cross_entropy"}, "optimizer": {"l2": 1e-4},
    }  # fmt: skip
    rows = pytest.importorskip("pandas").read_csv(real("adult/adult.csv"), keep_default_na=False)
    fitted = fit_window(tables, rows)
    assert fitted.value == pytest.approx(least(streamtrain.Job.from_tables(tables), rows, fitted, 1e-4), rel=BAR)
    assert fitted.manifest.rows_seen == len(rows) and fitted.manifest.metrics["total"]["accuracy"] > 0.83


@pytest.mark.full
def test_of_real_articles(tmp_path: Path) -> None:
    lines = tmp_path / "rcv1.vw"
    lines.write_bytes(b"".join(real("rcv1/rcv1_small.dat").read_bytes().splitlines(True)[:4000]))
    tables = {
        "records": {"format": "vw"},
        "columns": {"features": {"kind": "sparse", "buckets": 262144, "most": 1024},
                    "label": {"role": "label", "classes": ["-1", "1"]}},
        "model": {"loss": "softmax_cross_entropy"}, "optimizer": {"l2": 1e-4},
    }  # fmt: skip
    fitted = fit_window(tables, files=[lines])
    assert fitted.converged
    records = [line for line in lines.read_bytes().splitlines() if line]
    assert fitted.value == pytest.approx(least(streamtrain.Job.from_tables(tables), records, fitted, 1e-4), rel=BAR)


class Rosenbrock:
    """A bent valley with its lowest point at (1, 1); `bad`: evaluations that give NaN."""

    rounding = 1e-15

    def __init__(self, bad: bool = False) -> None:
        self.bad, self.evaluations = bad, 0

    def start(self) -> Any:
        return np.array([-1.2, 1.0])

    def __call__(self, x: Any) -> tuple[float, Any]:
        self.evaluations += 1
        slope = [-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]
        value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        return (float("nan") if self.bad or abs(x[0]) > 2 else value), np.array(slope)


@pytest.mark.parametrize("name", MINIMIZERS)
def test_why_it_ends(name: str) -> None:
    function: Any = Rosenbrock()
    settings = {"gradient_tolerance": 1e-6, "value_tolerance": 0.0, "iterations": 20_000}
    found = minimize(function, name, settings, None)
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-5)
    assert (found.reason, found.evaluations) == ("gradient_tolerance", function.evaluations)
    assert [each.iteration for each in found.steps] == list(range(1, len(found.steps) + 1))
    assert found.steps[-1].loss == found.value and found.gradient_norm <= 1e-6
    for changed, reason in ({"iterations": 2}, "iterations"), ({"evaluations": 4}, "evaluations"), (
            {"value_tolerance": 0.9}, "value_tolerance"):  # fmt: skip
        assert minimize(function, name, {**settings, **changed}, None).reason == reason, changed
    assert minimize(Rosenbrock(bad=True), name, settings, None).reason == "not_finite"  # type: ignore[arg-type]


def test_the_same_bits_in_every_run_and_on_every_instruction_set() -> None:
    job, rows = build_job(1000)
    job = {**job, "model": {**job["model"], "layers": [{"dense": 8, "activation": "tanh"}]}}
    before, found = _native.select_isa("auto"), []
    try:
        for isa in (*_native.supported_isas(), before):
            _native.select_isa(isa)
            fitted = fit_window(job, rows, iterations=30)
            found.append((fitted.value, fitted.stopped, *(array.tobytes() for array in fitted.parameters.values())))
    finally:
        _native.select_isa(before)
    assert all(each == found[0] for each in found)


def test_statistics_are_those_of_a_first_round_of_all_rows() -> None:
    tables = {
        **with_train(batch_rows=500, batch_growth="off", averaging_frequency=4, workers=1),
        "transforms": {"rate": {"target_mean": "colour"}, "seen": {"count": "colour"}},
        "optimizer": {"name": "sgd", "learning_rate": 1e-9},
    }
    rows = columns(2000)
    window, rounds = fit_window(tables, rows, iterations=1), streamtrain.fit(tables, rows)
    assert len(rounds.statistics) > 3 and rounds.statistics.keys() == window.statistics.keys()
    for name, statistic in rounds.statistics.items():
        np.testing.assert_allclose(window.statistics[name], statistic, rtol=1e-12, err_msg=name)


def test_it_is_a_fit(tmp_path: Path) -> None:
    job, rows = build_job(2000)
    fitted = fit_window(job, rows)
    row = {name: values[7] for name, values in rows.items() if name not in ("y", "w")}
    answer = fitted.predict(row)
    assert answer["prediction"] in "0123"
    fitted.save(tmp_path / "model")
    assert streamtrain.Fitted.load(tmp_path / "model").predict(row) == answer
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied == fitted and copied.predict(row) == answer and copied.converged == fitted.converged
    history = fitted.history.rows()
    assert [each["iteration"] for each in history] == list(range(1, fitted.iterations + 1))
    assert history[-1]["loss"] == fitted.value and history[-1]["gradient_norm"] == fitted.gradient_norm
    assert history[-1]["evaluations"] == fitted.evaluations
    total = fitted.manifest.metrics["total"]
    assert total["rows"] == 2000 == fitted.manifest.rows_seen and total["log_loss"] < 0.9 * total["constant_log_loss"]
    assert fitted.value > total["log_loss"]  # with l2 on top
    assert not fitted.manifest.untrained
    again = fit_window(job, rows, start=fitted)
    assert again.iterations <= 2 and again.value == pytest.approx(fitted.value, rel=1e-7)
    fitted.history.plot("loss", "gradient_norm")


def test_a_callback_ends_it() -> None:
    job, rows = build_job(500)
    seen = []

    def watch(step: WindowStep) -> str | None:
        seen.append(step)
        return "seen enough" if step.iteration == 2 else None

    fitted = fit_window(job, rows, callback=watch)
    assert (fitted.reason, fitted.stopped, len(seen)) == ("callback", "callback: seen enough", 2)
    with pytest.raises(ZeroDivisionError):
        fit_window(job, rows, callback=lambda each: str(1 // 0))


def test_rows_are_read_once_from_wherever_they_are(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    job, rows = build_job(700)
    frame = pandas.DataFrame(rows)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    values = {
        fit_window(job, given, iterations=5).value
        for given in (rows, frame, iter([frame[:300], frame[300:]]), frame.to_dict("records"))
    }
    values.add(fit_window(job, files=tmp_path / "rows.csv", iterations=5).value)
    assert len(values) == 1


def test_mistakes_are_found_before_rows_are_read() -> None:
    def never() -> Any:
        raise AssertionError
        yield

    job, rows = build_job(50)
    large = {**job["columns"], "said": {"kind": "text", "buckets": 1 << 23, "missing": ""}}
    for given, settings, message in (
        (job, {"rows": never(), "pears": 3}, "lbfgs: pears: unknown setting of lbfgs"),
        (job, {"rows": never(), "optimizer": "adam"}, "optimizer: expected one of lbfgs"),
        ({**job, "optimizer": {"l1": 1e-3}}, {"rows": never()}, "expected l1 = 0 for "),
        ({**job, "columns": large}, {"rows": never()}, "parameters: expected at most 16,777,216"),
        (job, {}, "fit_window: expected rows, or the paths of files, got neither"),
        (job, {"rows": rows, "files": "a.csv"}, "fit_window: expected rows, or the paths of files, got both"),
        (job, {"rows": []}, "fit_window: expected at least one row, got none"),
        (job, {"rows": {**rows, "x1": ["?"] * 50}}, r"row 0 at \$.x1: .* got 50 of 50; .* max_rejected"),
        ({"columns": {}}, {"rows": never()}, "columns"),
    ):
        with pytest.raises((UserMistake, JobMistakes), match=message):
            fit_window(given, **settings)
