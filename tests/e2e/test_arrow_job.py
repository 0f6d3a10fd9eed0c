"""Arrow through Kafka: what pyarrow and our own writer send trains, is checked, replayed and asked for."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamtrain import LiveModel, RecordWriter, read_predictions
from streamtrain.clients.dead_letters import read_dead_letters
from tests.e2e.harness import LiveJob, rows


def stream(given: list[dict[str, Any]], **options: Any) -> bytes:
    """Two batches, of a dictionary of colours, between columns that the job does not name."""
    table = pa.Table.from_pylist([{"note": ["a", None], **row, "more": {"b": 1}} for row in given])
    coded = table["colour"].dictionary_encode()
    table = table.set_column(table.column_names.index("colour"), "colour", coded).combine_chunks()
    to = io.BytesIO()
    with pa.ipc.new_stream(to, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=len(given) // 2 + 1)
    return to.getvalue()


def test_streams_train(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, format="arrow", batch_rows=16)
    given = list(rows(1000))
    job.produce_values(stream(given[i : i + 50]) for i in range(0, 600, 50))
    job.produce_values([stream(given[:9], compression="zstd"), stream(given[:9])[:-3]])
    with RecordWriter(job.job) as writer:
        assert writer.write(given[600:]) == 400
    assert job.train("--until-end")[-1]["rows"] == 1000
    assert job.verified()["rows"] == {"trained": 1000, "dead_lettered": 2, "filtered": 0}
    job.replayed()
    told = {part.reason.partition(" at byte")[0] for found in read_dead_letters(job.job) for part in found.letter.rows}
    assert told == {
        "expected an Arrow IPC stream, got a compressed body (LZ4 or ZSTD); write it without",
        "expected an Arrow IPC stream, got a message of 5 bytes",
    }
    asked = [{name: row[name] for name in row if name != "y"} for row in rows(3, seed=2)]
    with RecordWriter(job.job, to="requests") as writer:
        writer.write(asked)
    assert job.command("predict", "--until-end").returncode == 0
    (answer,) = read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(30)
        assert answer.prediction == [model.predict(row) for row in asked]
