"""`streamtrain acl` without a Kafka: which topics the rights are on."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import JOB, Run

HELD_OUT = '\n[train.early_stopping]\nno_improvement = 3\nheld_out = {{ topic = "{topic}" }}\n'


def test_a_trainer_reads_the_topic_that_is_held_out(run: Run, tmp_path: Path) -> None:
    plain = JOB.format(name="acl", bootstrap="127.0.0.1:1", format="json")
    found = []
    for text in (plain, plain + HELD_OUT.format(topic="judges"), plain + HELD_OUT.format(topic="acl.records")):
        job = tmp_path / "job.toml"
        job.write_text(text)
        found.append(run("acl", job, "--for", "trainer", "--json").document["rights"])
    of_it = {"kind": "topic", "name": "judges", "operations": ["Read", "Describe", "DescribeConfigs"], "begins": False}
    assert of_it in found[1] and [right for right in found[1] if right != of_it] == found[0] == found[2]
