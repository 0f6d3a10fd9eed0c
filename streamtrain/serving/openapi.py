"""The OpenAPI document and first page of a server: its predictions, with an example of each job's rows.

No script and nothing from another host.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from streamtrain.columns.kinds.parsed import NumberKind
from streamtrain.columns.schema import Schema
from streamtrain.serving.served_model import HttpModel

_ERROR = {"type": "object", "properties": {name: {"type": "string"} for name in ("path", "reason", "where")}}
_LINEAGE = {
    "version": {"type": "integer"}, "digest": {"type": "string"}, "run": {"type": "integer"},
    "lineage": {"type": "string"}, "age_s": {"type": "number"},
}  # fmt: skip
_REFUSED = {
    "400": "the body cannot be read", "404": "the job is not served, or that version not loaded",
    "408": "the body came too slowly", "413": "the body, or its answer, is too large",
    "422": "the one row cannot be predicted", "429": "too many requests at once", "503": "no trained snapshot yet",
}  # fmt: skip


def example_row(schema: Schema) -> dict[str, Any]:
    """A row of the job's columns; what the label and other columns that are passed over would be is left out."""
    row: dict[str, Any] = {}
    for name, column in schema.without_message().columns:
        if name in schema.decoded_names:
            _put(row, schema.paths.get(name) or (name,), _example(column))
    return row


def described(document: dict[str, Any], models: Mapping[str, HttpModel]) -> dict[str, Any]:
    """FastAPI's document with the routes it does not answer itself."""
    paths = dict(document["paths"])
    for job, model in models.items():
        scorer = model.scorer
        row = {} if scorer is None else example_row(scorer.served.shape.schema)
        paths[f"/predict/{job}"] = {"post": _predict(job, row)}
        paths[f"/v2/models/{job}/infer"] = {"post": _infer(job)}
    return {**document, "paths": paths}


def page(url: str, models: Mapping[str, HttpModel]) -> str:
    """HTML."""
    parts = [_HEAD]
    for job, model in models.items():
        scorer = model.scorer
        state = f"waits for {model.waits_for}"
        row: dict[str, Any] = {}
        if scorer is not None:
            row = example_row(scorer.served.shape.schema)
            state = f"version {scorer.version}, {model.age_s or 0:.1f} s old"
        state += "" if model.stays_at is None else f"; stays at snapshot {model.stays_at}"
        call = f"curl -d '{json.dumps(row, ensure_ascii=False)}' {url}/predict/{job}"
        parts.append(f"<h2>{html.escape(job)}</h2><p>{html.escape(state)}</p><pre>{html.escape(call)}</pre>")
    return "".join([*parts, _FOOT])


def _put(row: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    """Nested as the path says; below a list's place nothing is shown but its first."""
    at: Any = row
    for step, following in zip(path, (*path[1:], None), strict=True):
        new = value if following is None else ([None] * (following + 1) if isinstance(following, int) else {})
        if isinstance(at, list):
            at.extend([None] * (int(step) + 1 - len(at)))
            at[int(step)] = at = new if at[int(step)] is None else at[int(step)]
        else:
            at = at.setdefault(step, new)


def _example(column: Any) -> Any:
    names = getattr(column, "categories", None) or getattr(column, "names", None)
    is_number = isinstance(column.entry, NumberKind) or column.entry.is_numeric(column)
    value: Any = 1.5 if is_number else names[0] if isinstance(names, list) and names else "text"
    form = column.entry.cells(column)
    if form == "pairs":
        return [[0, 1.0]]
    size = getattr(column, "size", None)
    return [value] * (size if isinstance(size, int) else 2) if form == "list" else value


def _predict(job: str, row: dict[str, Any]) -> dict[str, Any]:
    answer = {"type": "object", "properties": {
        "prediction": {}, "probabilities": {"type": "object"}, "predictions": {"type": "array"}, "error": _ERROR,
        **_LINEAGE,
    }}  # fmt: skip
    return {
        "summary": f"Predicts rows of {job}: an object, an array of them, or an object of columns",
        "requestBody": {"required": True, "content": {"application/json": {"example": row}}},
        "responses": {"200": {"description": "answers of one snapshot, which is told",
                              "content": {"application/json": {"schema": answer}}}, **_refused()},
    }  # fmt: skip


def _infer(job: str) -> dict[str, Any]:
    return {
        "summary": f"Predicts tensors for {job}, as the Open Inference Protocol has it: an input for each column",
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
        "responses": {"200": {"description": "outputs as tensors"}, **_refused()},
    }


def _refused() -> dict[str, Any]:
    return {code: {"description": text} for code, text in _REFUSED.items()}


_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>streamtrain serve</title>
<meta name="viewport" content="width=device-width"><style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { overflow-x: auto; padding: .8rem; border: 1px solid #8888; border-radius: .3rem }
:root { color-scheme: light dark }</style><h1>streamtrain serve</h1>
"""
_FOOT = """<h2>More</h2><ul><li><a href="openapi.json">openapi.json</a></li><li><a href="metrics">metrics</a></li>
<li><a href="v2/health/ready">v2/health/ready</a></li></ul></html>
"""
