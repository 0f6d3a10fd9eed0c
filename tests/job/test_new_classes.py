"""Classes that a job has more than a snapshot: which they are, what a snapshot's settings are with them, its state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain.compute.enlarged import enlarged
from streamtrain.compute.model import Model
from streamtrain.compute.state import views
from streamtrain.job import Job
from streamtrain.job.new_classes import new_classes, with_new_classes

SOFTMAX = "softmax_cross_entropy"
AB, ABC = ["a", "b"], ["a", "b", "c"]
OUTER = {"optimizer": {"name": "momentum"}, "train": {"averaging": {"name": "outer_nesterov"}}}


def job(classes: Any, second: Any = None, loss: Any = None, **tables: Any) -> Job:
    """A job with a label y, or with two that have heads."""
    columns = {"x": {}, "tags": {"kind": "sparse", "buckets": 7}, "y": {"role": "label", "classes": classes}}
    model: dict[str, Any] = {"layers": [{"dense": 3}], "loss": {"name": SOFTMAX, **(loss or {})}}
    if second is not None:
        columns["z"] = {"role": "label", "classes": second, "missing": "skip_head"}
        model = {"layers": [{"dense": 3}], "heads": {name: {"loss": {"name": SOFTMAX}} for name in "yz"}}
    return Job.from_tables({"columns": columns, "model": model, **tables})


CASES = [
    (job(AB), job(ABC), {"y": ["c"]}),
    (job(5), job(7), {"y": ["5", "6"]}),
    (job([3, 1]), job([3, 1, 2]), {"y": ["2"]}),
    (job(AB, ABC), job(AB, [*ABC, "d"]), {"z": ["d"]}),
    (job(AB, loss={"class_weights": [1, 2]}), job(ABC, loss={"class_weights": [1, 2, 5]}), {"y": ["c"]}),
    (job(AB, loss={"class_weights": {"a": 2}}), job(ABC, loss={"class_weights": {"a": 2, "c": 5}}), {"y": ["c"]}),
    (job(64, **OUTER), job(101, **OUTER), {"y": [str(at) for at in range(64, 101)]}),
]
OTHERS = [
    (job(ABC), job(AB)), (job(AB), job(["a", "c", "b"])), (job(AB), job(3)), (job(["0", "1"]), job([0, 1, 2])),
]


@pytest.mark.parametrize(("before", "after", "names"), CASES)
def test_appended_classes_are_named_and_the_state_keeps_all_it_has(before: Job, after: Job, names: Any) -> None:
    assert new_classes(after, before.effective()) == names
    assert after.differences(with_new_classes(after, before.effective())) == []
    layouts = [Model(each.model_spec()).layout.published(2) for each in (before, after)]
    state = np.random.default_rng(0).integers(1, 100, layouts[0].state_bytes).astype(np.uint8)
    old, new = views(layouts[0], state), views(layouts[1], enlarged(layouts[0], state, layouts[1]))
    grown = set()
    for name, block in new.items():
        kept = old.get(name, block[:0])
        assert np.array_equal(block[tuple(map(slice, kept.shape))], kept), name
        grown |= {name} if kept.shape != block.shape else set()
        rest = np.ones(block.shape, bool)
        rest[tuple(map(slice, kept.shape))] = False
        expected = old[name.removesuffix("top") + "loss"].reshape(-1)[1] if name.endswith(".top") else 0
        assert (block[rest] == expected).all(), name
    head = ".z" if "z" in names else ""
    assert {f"output{head}.weight", f"output{head}.bias", f"label{head}.classes"} <= grown, grown
    assert any(name.startswith("adam.") or "outer" in name or "momentum" in name for name in grown)
    assert not any(".y." in name for name in grown if head)


@pytest.mark.parametrize(("before", "after"), OTHERS)
def test_classes_that_are_not_appended_stay_a_difference(before: Job, after: Job) -> None:
    assert new_classes(after, before.effective()) == {}
    assert after.differences(with_new_classes(after, before.effective()))[0].startswith("columns.y.classes: ")
