"""`verify` counts early stopping again, and finds whatever a publication says of it that does not follow."""

from __future__ import annotations

from typing import Any

import pytest

from streamtrain.checks.verify.report import Check
from streamtrain.checks.verify.verify import check_topics
from tests.checks.verify.fields import Path, paths, put
from tests.checks.verify.forger import Forger, edited, unpacked
from tests.checks.verify.good_job import GoodJob, compacted
from tests.checks.verify.topics_in_memory import Written

EARLY = """[train.early_stopping]
no_improvement = 2
rows = 1000
time = "1h"
epochs = 9
"""
SCORES = (0.5, 0.4, 0.45, 0.3, 0.35, 0.36)


def trained(settings: str = EARLY, held_out: dict[str, Any] | None = None) -> GoodJob:
    made = GoodJob(clean=True)
    made.use(early=settings)
    scores = iter(enumerate(SCORES))
    for start in ({}, {}, {"restore": 3}):
        made.begin(**start)
        for publication in range(2):
            made.produce()
            number, score = next(scores)
            scored = {"window": {"rows": 5}, **({"held_out": {"log_loss": score}} if publication else {})}
            closed = {"window": {"log_loss": score, "rows": 10_000 + number}}
            made.train(scores=closed if held_out is None else scored, held_out=held_out, passes=publication)
    return made


def found(written: Written) -> Check | None:
    return next((check for check in check_topics(written.topics()).checks if check.name == "early stopping"), None)


BLOCK = ("metrics", "early_stopping")
HELD_OUT = {"identity": "files:abc", "rows": 700}
BY_FILES = EARLY + 'held_out = { files = ["held.csv"] }\n'
CASES = {"windows": (EARLY, None), "rows held out": (BY_FILES, HELD_OUT)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("held", [lambda made: made, compacted], ids=["whole", "later"])
def test_what_a_trainer_tells_is_right(case: str, held: Any) -> None:
    written = held(trained(*CASES[case])).written
    report = check_topics(written.topics())
    assert report.ok, "\n".join(report.lines())
    check = found(written)
    assert check is not None and check.span == "6 publications"


def test_a_job_without_it_has_no_such_line() -> None:
    assert found(trained("").written) is None


WHERE = [("windows", 2), ("rows held out", 5), ("windows", 7)]
ELSEWHERE = [("rows held out", 2), ("windows", 5), ("rows held out", 7)]


@pytest.mark.parametrize(
    ("case", "version"), [*WHERE, *(pytest.param(*each, marks=pytest.mark.full) for each in ELSEWHERE)]
)
def test_whatever_else_it_tells_is_found(case: str, version: int) -> None:
    """Changes it in manifest and round log alike, so only the counts speak against it: in the first evaluation, in a
    run that went on, and after a restore."""
    written = trained(*CASES[case]).written
    logs = [unpacked(each.value) for each in written.partitions["rounds"][0].messages]
    ours = [path for log in logs if log["version"] == version for path in paths(log) if path[:2] == BLOCK]
    assert ours
    for path in ours:
        check = found(edited(written, version, lambda document, path=path: put(document, path)))
        assert check is not None and check.problems, f"not found: {path}"
        assert all(f"snapshot {version}" in each or f"snapshot {version + 1}" in each for each in check.problems)


def test_metrics_that_do_not_fit_the_settings_are_found() -> None:
    for early, metrics in (("", {"early_stopping": {"epochs": 0}}), (EARLY, {})):
        made = GoodJob(clean=True)
        made.use(early=early)
        made.begin()
        for _ in range(2):
            made.more()
        version = max(made.located)

        def edit(document: dict[str, Any], metrics: dict[str, Any] = metrics) -> None:
            document["metrics"].pop("early_stopping", None)
            document["metrics"] |= metrics

        check = found(edited(made.written, version, edit))
        assert check is not None and len(check.problems) == 1 and f"snapshot {version}: " in check.problems[0]


@pytest.mark.parametrize("version", [2, 3])
def test_figures_of_rows_held_out_stand_where_it_was_judged_and_nowhere_else(version: int) -> None:
    def edit(document: dict[str, Any]) -> None:
        if document["metrics"].pop("held_out", None) is None:
            document["metrics"]["held_out"] = {"log_loss": 0.1}

    check = found(edited(trained(*CASES["rows held out"]).written, version, edit))
    assert check is not None and any("of rows held out" in each for each in check.problems)


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, {"epochs": {}}, {"epochs": b"1"}, {b"epochs": 1, "since": 0}])
@pytest.mark.parametrize("at", [("early_stopping",), ("early_stopping", "held_out")])
def test_what_is_of_another_type_is_a_finding_and_never_an_exception(at: Path, value: Any) -> None:
    def edit(document: Any) -> None:
        put(document, ("metrics", *at), lambda _: value)

    written = trained(*CASES["rows held out"]).written
    for forgery in ({"manifests": {2: edit}, "logs": {2: edit}}, {"manifests": {2: edit}}, {"logs": {2: edit}}):
        assert not check_topics(Forger(written, **forgery).forged().topics()).ok
