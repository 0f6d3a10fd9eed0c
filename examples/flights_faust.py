"""A Faust application around the job `flights`: departures are enriched and scored, arrivals become training records.

    pip install 'streamtrain[faust]' && faust -A flights_faust worker --without-web

runs it, in this folder, beside `streamtrain train flights.toml`.
"""

# Reads the topics flights.routes {"origin", "dest", "distance"}, flights.departures {"flight", and the job's columns
# but distance and late} and flights.arrivals {"flight", "arr_delay"}; keys are the route or the flight. Writes
# flights.scored, and back to flights.records the rows whose label has arrived.

from __future__ import annotations

import os
from typing import Any

import faust

from streamtrain.integrations.faust import live_model

JOB = os.environ.get("FLIGHTS_JOB", "flights")
LATE_MINUTES = 15

app = faust.App(
    f"{JOB}.scoring",
    broker=os.environ.get("FLIGHTS_BROKER", "kafka://localhost:9092"),
    value_serializer="json",
    topic_partitions=1,  # tables and the topics that fill them need the same number
    topic_replication_factor=1,
    consumer_auto_offset_reset="earliest",
    web_enabled=False,
)
model = live_model(app, JOB)

routes = app.topic(f"{JOB}.routes")
departures = app.topic(f"{JOB}.departures", key_type=str)
arrivals = app.topic(f"{JOB}.arrivals", key_type=str)
scored = app.topic(f"{JOB}.scored", key_type=str)
records = app.topic(f"{JOB}.records", key_type=str)

distances = app.Table("distances", default=lambda: None)
# Rows that wait for their label. Written in batches, where no event tells the partition: the key's own says it.
underway = app.Table("underway", default=lambda: None, use_partitioner=True)


@app.agent(routes)
async def learn_routes(stream: Any) -> None:
    """Fills the table that departures are enriched from."""
    async for route in stream:
        distances[f"{route['origin']}-{route['dest']}"] = route["distance"]


@app.agent(departures)
async def score(stream: Any) -> None:
    """Scores departures in batches of what comes within 20 ms: one call of the model for all."""
    await model.wait_ready(timeout_s=600)
    async for batch in stream.take(100, within=0.02):
        rows = [{**row, "distance": distances[f"{row['origin']}-{row['dest']}"]} for row in batch]
        rows = [row for row in rows if row["distance"] is not None]  # of a route we do not know yet: not scored
        answers = model.predict(rows)
        for row, answer in zip(rows, answers, strict=True):
            underway[row["flight"]] = row
            value = {"flight": row["flight"], "late": answer["prediction"], "version": model.version}
            await scored.send(key=row["flight"], value=value)


@app.agent(arrivals)
async def label(stream: Any) -> None:
    """A flight that has arrived is a training record: its row as it was scored, and the label."""
    async for arrival in stream:
        row = underway.pop(arrival["flight"], None)
        if row is not None:
            late = int(arrival["arr_delay"] > LATE_MINUTES)
            await records.send(key=row["flight"], value={**row, "late": late})


if __name__ == "__main__":
    app.main()
