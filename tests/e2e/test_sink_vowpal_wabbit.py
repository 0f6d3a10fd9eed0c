"""Records of Vowpal Wabbit's lines: columns of namespaces, and a tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamtrain import LiveModel
from tests.e2e.sink import Bad, Feature, Message, Place, Plan, Row, Sink, run_sink

VW = {
    "records": 'format = "vw"\nmax_dead_letter_share = 0.9', "optimizer": "learning_rate = 0.05",
    "columns": """user = { kind = "sparse", buckets = 262144, namespaces = ["u", "v"] }
rest = { kind = "sparse", buckets = 262144, embed = 4 }
shard = { kind = "category", buckets = 16, embed = 2, path = "tag", missing = "" }
y = { role = "label" }""",
}  # fmt: skip


def test_vowpal_wabbit(kafka: Any, tmp_path: Path) -> None:
    """Each column learns from its namespaces, and the tag is a column."""
    def cells(place: Place, row: Row) -> None:
        """Of which a feature of the user says the label."""
        random = np.random.default_rng(place.row)
        for name in [name for name in row if name != "y"]:
            del row[name]
        row["line"] = (
            f"'t{place.row % 3} |{random.choice(['u', 'v'])} {'yes' if row['y'] else 'no'}:0.5 n{random.integers(9)} "
            f"|page p{random.integers(9)} |other:2 {random.integers(99)}:{random.normal():.3f}"
        )

    def encode(sink: Sink, held: Sequence[Row], number: int, asked: bool) -> Iterator[Message]:
        yield {"value": "\n".join(row["line"] if asked else f"{row['y']} {row['line']}" for row in held).encode()}

    def check(sink: Sink) -> None:
        assert {"user.embedding", "rest.embedding", "shard.embedding"} <= {*sink.newest.parameters}
        with LiveModel(sink.live.name, bootstrap=sink.live.bootstrap) as model:
            model.wait_ready(60)
            yes, no = model.predict([{"tag": "t1", "user": {name: 0.5}, "rest": {"5": 1}} for name in ("yes", "no")])
            assert yes["prediction"] - no["prediction"] > 0.1
            records = [f"1 't1 |u {name}:0.5 | 5".encode() for name in ("yes", "no")]
            indexes = sink.live.job.plan().decode(records)["user"].values.tolist()
            as_read = model.predict([{"tag": "t1", "user": [[index, 0.5]], "rest": {"5": 1}} for index in indexes])
            assert [each["prediction"] for each in as_read] == [yes["prediction"], no["prediction"]]

    bad = [Bad({"line": "'t1 |u a |other x:n/a"}, "", "number")] * 9
    feature = Feature("namespaces", cells=cells, bad=bad, check=check)
    run_sink(kafka, tmp_path, [feature], Plan(VW, count=1_200, sizes=(30,), encode=encode, once=True, fits=False))
