"""Each kind of record source answers every question: a job whose source is gone is reported, never a crash."""

from __future__ import annotations

import pytest
from publisher import example_manifest

from streamtrain.job import Job
from streamtrain.record_sources import REGISTRY
from streamtrain.record_sources.source_kind import Given, RecordsGone, SourceKind, Topic, source_of
from streamtrain.topics.manifest import Positions
from tests.fitting.example import TABLES
from tests.topics.test_topic import terms

SCHEMA = Job.from_tables(TABLES).schema
NOTHING = Given(Topic("records", "another topic", ()))


@pytest.mark.parametrize("name", REGISTRY.names())
def test_what_is_not_there_any_more_is_reported(name: str) -> None:
    identity = f"{name}:1"
    kind = source_of(identity)
    assert kind is REGISTRY.get(name).SOURCE and isinstance(kind, SourceKind)
    read = terms(topic_id=identity)
    assert kind.topic(read, SCHEMA.to_dict(), NOTHING) is None and kind.name_of(identity, 0, NOTHING) is None
    with pytest.raises(RecordsGone):
        kind.reader(read, SCHEMA, NOTHING)
    manifest = example_manifest(positions=Positions(identity, ()), gaps=())
    assert kind.progress(manifest, None, ()) in (([], None), ([], []))
    assert list(kind.findings(manifest, None)) == [] and not kind.begins(identity, ({"partition": 0},))
    assert kind.decoded_as(SCHEMA, read.format) == (SCHEMA, read.format) and "of " in kind.gone
    assert kind.imported_at("a.snapshot", "latest") in ("keep", "beginning", "end")


def test_an_identity_without_a_name_of_a_kind_is_the_id_of_a_topic() -> None:
    assert {source_of(each) for each in ("2Zk7Jx8LTPO4jX2vS0Q1fg", "", "none", "a:b")} == {source_of("topic:1")}
