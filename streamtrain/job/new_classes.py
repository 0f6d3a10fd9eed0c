"""Classes that a job's labels have more than the snapshot it goes on from: at the end, so that indexes stay."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from streamtrain.columns.kinds.kind import as_text
from streamtrain.job.job import Job

_WEIGHTS = "class_weights"  # the setting of a loss that names classes


def new_classes(job: Job, effective: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns their names by label, in order; `effective`: the settings of the snapshot's job, as Job.effective().

    A label whose classes differ in any other way has none.
    """
    columns = (column for column in effective.get("columns", ()) if isinstance(column, Mapping))
    before = {column.get("name"): column.get("classes") for column in columns}
    pairs = ((name, _listed(before.get(name)), _listed(column.classes)) for name, column in job.schema.labels)
    return {
        name: [as_text(each) for each in now[len(was) :]]
        for name, was, now in pairs
        if 0 < len(was) < len(now) and json.dumps(was) == json.dumps(now[: len(was)])
    }


def with_new_classes(job: Job, effective: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings `effective` with the job's new classes, and with their weights in the loss."""
    added, ours, theirs = new_classes(job, effective), job.effective(), copy.deepcopy(dict(effective))
    mine = {column["name"]: column for column in ours["columns"]}
    for column in theirs.get("columns", []):
        if column["name"] in added:
            column["classes"] = mine[column["name"]]["classes"]
    for label, names in added.items():
        was, now = _loss(theirs, label), _loss(ours, label)
        if was.get(_WEIGHTS) != now.get(_WEIGHTS):
            was[_WEIGHTS] = _weighted(was.get(_WEIGHTS) or {}, now.get(_WEIGHTS), names)
    return theirs


def _listed(classes: Any) -> list[Any]:
    if isinstance(classes, int):
        return list(range(classes))
    return classes if isinstance(classes, list) else []


def _loss(settings: Mapping[str, Any], label: str) -> dict[str, Any]:
    model = settings.get("model", {})
    found: dict[str, Any] = model.get("heads", {}).get(label, model).get("loss", {})
    return found


def _weighted(was: Any, now: Any, names: list[str]) -> Any:
    """Weights of classes by name or in order, with those of the new classes as they are `now`."""
    if isinstance(was, dict) and isinstance(now, dict):
        return {**was, **{name: now[name] for name in names if name in now}}
    if isinstance(was, list) and isinstance(now, list):
        return [*was, *now[len(was) :]]
    return was
