"""A predictor's metrics, fed with its counters."""

from __future__ import annotations

import time

from streamtrain.telemetry.meters import Event, Growing, Lately, Meters


class PredictorMeters(Meters):
    """The metrics of one predictor; `answered` brings its counters, version 0 before there is a trained snapshot."""

    def __init__(self, job: str) -> None:
        ready = "there is a trained snapshot, no request waits for its schema"
        super().__init__(job, "predictor", "requests that no predictor of the job has answered yet", ready)
        self._requests = Growing(self._counter("requests", "requests answered"))
        self._rows = Growing(self._counter("rows", "rows predicted"))
        self._errors = Growing(self._counter("request_errors", "requests of which no row could be answered"))
        self._row_errors = Growing(self._counter("row_errors", "rows answered with an error"))
        self._batches = Growing(self._counter("batches", "batches of requests answered"))
        self._rewinds = Growing(self._counter("rewinds", "returns to the committed offsets after a failure"))
        self._rows_per_s = self._gauge("rows_per_second", "rows predicted, a second, lately")
        self._version = self._gauge("snapshot_version", "version of the snapshot that predicts; 0: none yet")
        self._age = self._gauge("snapshot_age_seconds", "time since that snapshot was made")
        self._lately = Lately()

    def _on_answered(self, event: Event) -> None:
        self._requests.set(event["requests"])
        self._rows.set(event["rows"])
        self._errors.set(event["errors"])
        self._row_errors.set(event["row_errors"])
        self._batches.set(event["batches"])
        self._rewinds.set(event["rewinds"])
        if (grown := self._lately.grown(event["rows"])) is not None:
            seconds, (rows,) = grown
            self._rows_per_s.set(rows / seconds)
        self._version.set(event["version"])
        self.works = event["version"] > 0 and not event["waiting"]
        if event["version"] > 0:
            created_s = event["snapshot_made_ms"] / 1_000
            self._age.set_function(lambda: max(0.0, time.time() - created_s))
