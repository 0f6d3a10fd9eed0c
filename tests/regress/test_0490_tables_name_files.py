"""A job of tables could not name a schema's file: only the text of one was taken."""

from __future__ import annotations

import json

from streamtrain import Job

SCHEMA = {
    "type": "record",
    "name": "Trip",
    "fields": [{"name": "far", "type": "float"}, {"name": "late", "type": "boolean"}],
}


def test_a_schema_lies_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "trip.avsc").write_text(json.dumps(SCHEMA))
    monkeypatch.chdir(tmp_path)
    tables = {
        "records": {"format": "avro", "schema": "trip.avsc"},
        "columns": {"far": {}, "late": {"role": "label"}},
        "model": {"layers": [], "loss": "binary_cross_entropy"},
    }
    columns = Job.from_tables(tables).plan().decode([b"\x00\x00\x80\x3f\x01"])
    assert (columns["far"].tolist(), columns["late"].tolist()) == ([1.0], [1.0])
