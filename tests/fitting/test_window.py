"""Windows in memory: the optimum that others find, the same in every run, and the interface of a fit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain import _native, fit_window
from streamtrain.columns.row_plan import Lists
from streamtrain.compute import minimizers
from streamtrain.errors import UserMistake
from streamtrain.job.mistakes import JobMistakes
from tests.bench.learning_streams import DATA
from tests.fitting.example import TABLES, columns

BAR = 1e-6   # of the objective, relative
WORDS = ["red", "green", "blue", "old", "new", "large", "small"]


def made(rows: int, classes: int = 4, seed: int = 5) -> tuple[dict[str, Any], dict[str, Any]]:
    """A job of numbers and texts, its rows, whose classes depend on both, and some weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 2, (rows, 5)).astype(np.float32)
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


class Reference:
    """The maximum-entropy objective in float64 over what a job makes of rows, standardised as the fitted model does."""

    def __init__(self, job: Any, rows: Any, fitted: Any, l2: float) -> None:
        found = (job if isinstance(job, streamtrain.Job) else streamtrain.Job.from_tables(job)).plan().transform(rows)
        sparse = pytest.importorskip("scipy.sparse")
        numbers, lists = [], []
        moments = fitted.statistics.get("standardize.numbers")
        for name, cells in found.items():
            if name in ("y", "label", "income"):
                self.label = np.asarray(cells).astype(int)
            elif name == "w":
                self.weight = np.asarray(cells, np.float64)
            elif isinstance(cells, Lists):
                lists.append((name, cells))
            else:
                numbers.append(np.asarray(cells, np.float64))
        count = len(self.label)
        self.weight = getattr(self, "weight", np.ones(count))
        parts = [sparse.csr_matrix(standardised(np.stack(numbers, 1), moments))] if numbers else []
        for name, cells in lists:
            if name.endswith(".scale"):
                continue
            scale = found[f"{name}.scale"].values if f"{name}.scale" in found else np.ones(len(cells.values))
            buckets = fitted.parameters[f"{name}.embedding"].shape[0]
            parts.append(sparse.csr_matrix((scale.astype(np.float64), cells.values, cells.offsets), (count, buckets)))
        self.x, self.l2 = sparse.hstack(parts).tocsr(), l2
        self.classes = int(fitted.parameters["output.bias"].shape[0])

    def __call__(self, flat: Any) -> tuple[float, Any]:
        inputs, classes = self.x.shape[1], max(2, self.classes)
        w, b = flat[: inputs * classes].reshape(inputs, classes), flat[inputs * classes :]
        z = self.x @ w + b
        z -= z.max(1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
        share = self.weight / self.weight.sum()
        at = np.arange(len(self.label)), self.label
        slope = np.exp(log_p)
        slope[at] -= 1
        slope *= share[:, None]
        gradient = np.concatenate([(self.x.T @ slope + self.l2 * w).ravel(), slope.sum(0)])
        return float(-(share * log_p[at]).sum() + self.l2 / 2 * (w**2).sum()), gradient

    def least(self) -> float:
        minimize = pytest.importorskip("scipy.optimize").minimize
        size = (self.x.shape[1] + 1) * self.classes
        exact = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20_000, "maxfun": 40_000}
        return float(minimize(self, np.zeros(size), jac=True, method="L-BFGS-B", options=exact).fun)


def standardised(numbers: Any, moments: Any) -> Any:
    """As the model sees them: cut at 8 deviations."""
    count, mean, squares = (moments[:, at] for at in range(3))
    return np.clip((numbers - mean) / np.sqrt(squares / count), -8, 8)


@pytest.mark.parametrize("optimizer", [each for each in minimizers.names() if not minimizers.get(each).BY_BATCHES])
def test_maximum_entropy_reaches_scipys_objective(optimizer: str) -> None:
    job, rows = made(6000)
    fitted = fit_window(job, rows, optimizer=optimizer)
    least = Reference(job, rows, fitted, 1e-3).least()
    assert abs(fitted.value - least) <= BAR * least
    assert fitted.converged and fitted.reason in ("gradient_tolerance", "value_tolerance")
    assert fitted.stopped.startswith(fitted.reason)


def adult() -> tuple[Any, Any]:
    path = DATA / "adult/adult.csv"
    if not path.exists():
        pytest.skip("the real data is not there")
    texts = ("type_employer", "education", "marital", "occupation", "relationship", "race", "sex", "country")
    job = {
        "columns": {
            **{name: {"standardize": True} for name in ("age", "fnlwgt", "education_num", "hr_per_week")},
            "capital_{gain,loss}": {"standardize": True},
            **{name: {"kind": "text", "buckets": 256, "missing": ""} for name in texts},
            "income": {"role": "label", "classes": ["<=50K", ">50K"]},
        },
        "records": {"format": "csv"},
        "model": {"loss": "softmax_cross_entropy"}, "optimizer": {"l2": 1e-4},
    }  # fmt: skip
    pandas = pytest.importorskip("pandas")
    return job, pandas.read_csv(path, keep_default_na=False)


@pytest.mark.full
def test_of_real_people() -> None:
    job, rows = adult()
    fitted = fit_window(job, rows)
    least = Reference(job, rows, fitted, 1e-4).least()
    assert abs(fitted.value - least) <= BAR * least
    assert fitted.manifest.rows_seen == len(rows) and fitted.manifest.metrics["total"]["accuracy"] > 0.83


@pytest.mark.full
def test_of_real_articles(tmp_path: Path) -> None:
    """Sparse pairs of 2^18: two classes of one logit each, of which the first is always 0 in theirs."""
    path = DATA / "rcv1/rcv1_small.dat"
    if not path.exists():
        pytest.skip("the real data is not there")
    lines = tmp_path / "rcv1.vw"
    lines.write_bytes(b"".join(path.read_bytes().splitlines(True)[:4000]))
    tables = {
        "records": {"format": "vw"},
        "columns": {"features": {"kind": "sparse", "buckets": 262144, "most": 1024},
                    "label": {"role": "label", "classes": ["-1", "1"]}},
        "model": {"loss": "softmax_cross_entropy"}, "optimizer": {"l2": 1e-4},
    }  # fmt: skip
    fitted = fit_window(tables, files=[lines])
    assert fitted.converged
    records = [line for line in lines.read_bytes().splitlines() if line]
    job = streamtrain.Job.from_tables(tables)
    least = OfRecords(job, records, fitted, 1e-4).least()
    assert abs(fitted.value - least) <= BAR * least


class OfRecords(Reference):
    def __init__(self, job: Any, records: Any, fitted: Any, l2: float) -> None:
        plan = job.plan()
        plan.transform = plan.decode
        job.__dict__["plan"] = lambda: plan
        super().__init__(job, records, fitted, l2)


@pytest.mark.parametrize("l1", [1e-3, 2e-2])
def test_owlqn_reaches_scikit_learns_objective(l1: float) -> None:
    """Of two classes by one logit, with l1 alone; the more of it, the fewer are left."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3000, 20)).astype(np.float32)
    y = (x[:, :4].sum(1) + rng.logistic(size=3000) > 0).astype(int)
    job = {"columns": {**{f"x{at}": {} for at in range(20)}, "y": {"role": "label"}}, "optimizer": {"l1": l1}}
    fitted = fit_window(job, {**{f"x{at}": x[:, at] for at in range(20)}, "y": y}, optimizer="owlqn")
    theirs = linear_model.LogisticRegression(
        penalty="l1", solver="saga", C=1 / (l1 * len(y)), tol=1e-10, max_iter=50_000
    ).fit(x.astype(np.float64), y)
    z = x.astype(np.float64) @ theirs.coef_[0] + theirs.intercept_[0]
    least = np.logaddexp(0, np.where(y == 1, -z, z)).mean() + l1 * abs(theirs.coef_).sum()
    assert abs(fitted.value - least) <= BAR * least
    ours = fitted.parameters["output.weight"][:, 0]
    assert ((ours == 0) == (theirs.coef_[0] == 0)).all() and (ours == 0).sum() > (0 if l1 < 0.01 else 10)
    with pytest.raises(UserMistake, match='optimizer="owlqn" is for that'):
        fit_window(job, {**{f"x{at}": x[:, at] for at in range(20)}, "y": y})


def test_meta_descent_comes_near_batch_by_batch() -> None:
    job, rows = made(4000)
    least = fit_window(job, rows).value
    fitted = fit_window({**job, "train": {"batch_rows": 64}}, rows, optimizer="stochastic_meta_descent", iterations=60)
    assert least - 1e-7 < fitted.value < 1.003 * least
    assert fitted.evaluations > 2 * fitted.iterations   # a pass looks twice at each batch, and once at all


def test_the_same_bits_in_every_run_and_on_every_instruction_set() -> None:
    job, rows = made(3000)
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
    tables = copy.deepcopy(TABLES)
    tables["transforms"] = {"rate": {"target_mean": "colour"}, "seen": {"count": "colour"}}
    tables["train"] |= {"batch_rows": 500, "batch_growth": "off", "averaging_frequency": 4, "workers": 1}
    tables["optimizer"] = {"name": "sgd", "learning_rate": 1e-9}
    rows = columns(2000)
    window, rounds = fit_window(tables, rows, iterations=1), streamtrain.fit(tables, rows)
    assert len(rounds.statistics) > 3 and rounds.statistics.keys() == window.statistics.keys()
    for name, statistic in rounds.statistics.items():
        np.testing.assert_allclose(window.statistics[name], statistic, rtol=1e-12, err_msg=name)


def test_it_is_a_fit(tmp_path: Path) -> None:
    job, rows = made(2000)
    fitted = fit_window(job, rows)
    row = {name: values[7] for name, values in rows.items() if name not in ("y", "w")}
    answer = fitted.predict(row)
    assert answer["prediction"] in "0123"
    fitted.save(tmp_path / "model")
    assert streamtrain.Fitted.load(tmp_path / "model").predict(row) == answer
    history = fitted.history.rows()
    assert [each["iteration"] for each in history] == list(range(1, fitted.iterations + 1))
    assert history[-1]["loss"] == fitted.value and history[-1]["gradient_norm"] == fitted.gradient_norm
    assert history[-1]["evaluations"] == fitted.evaluations
    told = fitted.manifest.metrics["total"]
    assert told["rows"] == 2000 == fitted.manifest.rows_seen and told["log_loss"] < 0.9 * told["constant_log_loss"]
    assert fitted.value > told["log_loss"]   # with l2 on top
    assert not fitted.manifest.untrained
    again = fit_window(job, rows, start=fitted)
    assert again.iterations <= 2 and again.value == pytest.approx(fitted.value, rel=1e-7)
    fitted.history.plot("loss", "gradient_norm")


def test_a_callback_ends_it() -> None:
    job, rows = made(500)
    seen = []

    def told(iteration: streamtrain.Iteration) -> str | None:
        seen.append(iteration)
        return "seen enough" if iteration.iteration == 2 else None

    fitted = fit_window(job, rows, callback=told)
    assert (fitted.reason, fitted.stopped, len(seen)) == ("callback", "callback: seen enough", 2)
    with pytest.raises(ZeroDivisionError):
        fit_window(job, rows, callback=lambda each: str(1 // 0))


def test_rows_are_read_once_from_wherever_they_are(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    job, rows = made(700)
    frame = pandas.DataFrame(rows)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    values = {
        fit_window(job, given, iterations=5).value
        for given in (rows, frame, iter([frame[:300], frame[300:]]), frame.to_dict("records"))
    }
    values.add(fit_window(job, files=tmp_path / "rows.csv", iterations=5).value)
    assert len(values) == 1


def test_what_is_none_is_said_before_rows_are_read() -> None:
    def never() -> Any:
        raise AssertionError
        yield

    job, rows = made(50)
    with pytest.raises(UserMistake, match="lbfgs: pears: unknown setting of lbfgs"):
        fit_window(job, never(), pears=3)
    with pytest.raises(UserMistake, match="minimizer: expected one of"):
        fit_window(job, never(), optimizer="adam")
    with pytest.raises(JobMistakes):
        fit_window({"columns": {}}, never())
    for given, got in (({}, "neither"), ({"rows": rows, "files": "a.csv"}, "both")):
        with pytest.raises(UserMistake, match=f"fit_window: expected rows, or the paths of files, got {got}"):
            fit_window(job, **given)
    with pytest.raises(UserMistake, match="fit_window: expected at least one row, got none"):
        fit_window(job, [])
    with pytest.raises(UserMistake, match=r"fit_window: .*x1"):
        fit_window(job, {**rows, "x1": ["?"] * 50})
    large = {**job["columns"], "said": {"kind": "text", "buckets": 1 << 23, "missing": ""}}
    with pytest.raises(UserMistake, match="parameters: expected at most 16,777,216"):
        fit_window({**job, "columns": large}, never())
