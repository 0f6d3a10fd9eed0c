"""Spans of the predictor's requests, made of what its native loop has gathered: between two turns, never in a batch."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.log import logger_without_repeats
from streamtrain.telemetry.tracing import Tracing

log = logger_without_repeats(__name__)


class RequestSpans:
    """The spans of the requests in `topic` that their header traceparent marks as sampled; none without `tracing`."""

    def __init__(self, tracing: Tracing | None, job: str, topic: str) -> None:
        self._tracing, self._job, self._topic = tracing, job, topic
        self._left_out = 0

    def take(self, native: _native.Predictor) -> None:
        """Makes those of what has been answered since."""
        if self._tracing is None:
            return
        found, left_out = native.drain_traced()
        for parent, state, partition, offset, begun_ns, ended_ns, version, rows, errors, error in found:
            carrier = {"traceparent": parent.decode("latin-1"), "tracestate": state.decode("latin-1")}
            attributes: dict[str, str | int] = {
                "messaging.system": "kafka",
                "messaging.operation.type": "process",
                "messaging.destination.name": self._topic,
                "messaging.destination.partition.id": str(partition),
                "messaging.kafka.offset": offset,
                "streamtrain.job": self._job,
                "streamtrain.version": version,
                "streamtrain.rows": rows,
                "streamtrain.errors": errors,
            }
            text = error.decode("utf-8", "replace")
            self._tracing.request(f"predict {self._job}", carrier, begun_ns, ended_ns, attributes, text, server=False)
        if left_out != self._left_out:
            log.warning("more requests are sampled than spans are made for", left_out=left_out)
            self._left_out = left_out

    def close(self) -> None:
        """Says how many were left out in all: of the last ones nothing may have been said."""
        if self._left_out:
            log.info("sampled requests of which no span was made", left_out=self._left_out)
