"""A job whose columns stand inside of nested JSON, from the topic to the snapshot and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from streamtrain import LiveModel, RecordWriter, fit
from streamtrain.compute.snapshot import decode
from streamtrain.job import Job
from tests.e2e.harness import LiveJob, rows

SETTINGS: dict[str, Any] = {"partitions": 1, "format": "json", "round_interval": "off", "max_dead_letter_share": 0.5}
PATHS = {
    '"x{1..4}" = {': '"x{1..4}" = { path = "user.numbers[{0..3}]",',
    "colour = {": """colour = { path = 'user["a.b"].colour',""",
    "y = {": 'y = { path = "outcome.y",',
}


def nested(row: dict[str, Any]) -> dict[str, Any]:
    user = {"name": "Ann", "numbers": [row[f"x{i}"] for i in range(1, 5)], "a.b": {"colour": row["colour"]}}
    return {"user": user, "colour": {"not": "this"}, "outcome": {"y": row["y"]}}


def test_nested_rows_train_to_the_bits_of_flat_ones(kafka: Any, tmp_path: Path) -> None:
    flat, deep = LiveJob(kafka, tmp_path, **SETTINGS), LiveJob(kafka, tmp_path, **SETTINGS)
    text = deep.path.read_text()
    for plain, with_path in PATHS.items():
        assert plain in text
        text = text.replace(plain, with_path)
    deep.path.write_text(text)
    given = list(rows(1200))
    flat.produce(1200)
    deep.produce_values(json.dumps(nested(row)).encode() for row in given[:700])
    with RecordWriter(deep.path) as writer:
        for row in given[700:800]:
            writer.write(nested(row))
        writer.write([nested(row) for row in given[800:1000]])
        writer.write({name: [row[name] for row in given[1000:]] for name in given[0]})
    bad = nested(given[0])
    bad["user"]["numbers"][2] = "n/a"
    deep.produce_values([json.dumps(bad).encode()])
    for job in (flat, deep):
        job.train("--until-end")
        assert job.verified()["rows"] == {"trained": 1200, "dead_lettered": int(job is deep), "filtered": 0}
        job.replayed()
    ours, theirs = (decode(job.newest().model) for job in (deep, flat))
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array)
    (letter,) = (json.loads(line) for line in deep.command(
        "read", "dead-letters", "--from-beginning", "--until-end", "--json"
    ).stdout.splitlines())  # fmt: skip
    assert letter["rows"][0]["path"] == "$.user.numbers[2]"
    with LiveModel(deep.name, bootstrap=deep.bootstrap) as model:
        model.wait_ready(60)
        answer = model.predict(nested(given[0]))
        assert model.predict({name: [given[0][name]] for name in given[0]}) == [answer]
    fitted = fit(Job.load(deep.path), map(nested, given))
    for name, array in theirs.items():
        np.testing.assert_array_equal({**fitted.parameters, **fitted.statistics}[name], array)
