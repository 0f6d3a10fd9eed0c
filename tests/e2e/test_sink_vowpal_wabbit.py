"""Records of Vowpal Wabbit's lines: columns of namespaces, and a tag; the Reuters data, from what `init` guesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e import commands
from tests.e2e.harness import LiveJob
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
        """A feature of the user has the label."""
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
        with sink.live.model() as model:
            yes, no = model.predict([{"tag": "t1", "user": {name: 0.5}, "rest": {"5": 1}} for name in ("yes", "no")])
            assert yes["prediction"] - no["prediction"] > 0.1
            records = [f"1 't1 |u {name}:0.5 | 5".encode() for name in ("yes", "no")]
            indexes = sink.live.job.plan().decode(records)["user"].values.tolist()
            as_read = model.predict([{"tag": "t1", "user": [[index, 0.5]], "rest": {"5": 1}} for index in indexes])
            assert [each["prediction"] for each in as_read] == [yes["prediction"], no["prediction"]]

    bad = [Bad({"line": "'t1 |u a |other x:n/a"}, "", "number")] * 9
    feature = Feature("namespaces", cells=cells, bad=bad, check=check)
    run_sink(kafka, tmp_path, [feature], Plan(VW, count=1_200, sizes=(30,), encode=encode, once=True, fits=False))


DATA = Path(__file__).parents[3] / "shared/data/rcv1/rcv1_small.dat"


@pytest.mark.full
def test_reuters_from_init_to_a_snapshot(kafka: Any, tmp_path: Path) -> None:
    if not DATA.exists():
        pytest.skip("no data set rcv1")
    sample, path = tmp_path / "rcv1.vw", tmp_path / "first.toml"
    sample.write_bytes(DATA.read_bytes())
    done = commands.run(["init", str(path), "--from", str(sample), "--label", "label"])
    assert done.returncode == 0, done.stderr
    _, head, text = path.read_text().partition("[records]")
    assert 'format = "vw"' in text and 'kind = "sparse", buckets = 262144' in text
    job = LiveJob(kafka, tmp_path, "rcv1", head + text.replace('round_interval = "250ms"', 'round_interval = "off"'))
    assert job.here("check").returncode == 0
    lines = sample.read_bytes().splitlines(keepends=True)
    job.produce_values((b"".join(lines[at : at + 100]) for at in range(0, len(lines), 100)), partition=0)
    job.train("--until-end")
    job.verified()
    job.replayed()
    assert job.newest().manifest.rows_seen == len(lines)
    figures = job.newest().manifest.metrics["total"]
    assert figures["accuracy"] > 0.75 and figures["auc"] > 0.85, figures
    with job.model() as model:
        pairs = [[34884, 0.06], [34889, 0.3]]
        cells = (pairs, {str(index): value for index, value in pairs}, [])
        answers = model.predict([{"features": each} for each in cells])
        assert answers[0] == answers[1] != answers[2]
