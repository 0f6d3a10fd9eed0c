"""Spans of OpenTelemetry (extra otel): publications, and predictions that continue their request's trace.

Switched on by the standard OTEL_* environment, which the command line looks at and OpenTelemetry's own SDK reads.
Without it, or without the extra, nothing is imported.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from streamtrain.errors import UserMistake
from streamtrain.log import get_logger

log = get_logger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_EXPORTERS = "OTEL_TRACES_EXPORTER"
_CLOSE_S = 5.0  # for spans on their way at the end; a collector that is away holds nobody up
_ANY_NAME = "unknown_service"  # what the SDK calls a service that nobody has named
Attributes = Mapping[str, str | int | float | bool]
Carrier = Mapping[str, str]  # traceparent, tracestate


def find_exporter(environment: Mapping[str, str]) -> str:
    """The exporter that OTEL_* names, where spans are asked for; else nothing.

    Unlike the SDK's own default, an environment that says nothing wants nothing.
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    named = environment.get(_EXPORTERS, "").strip()
    if not named:
        named = "otlp" if any(environment.get(name) for name in _ENDPOINTS) else "none"
    if named == "none":
        return ""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        log.info("OTEL_* asks for spans, but the extra otel is not installed: there are none", exporter=named)
        return ""
    return named


def opened(exporter: str) -> Tracing | None:
    """Returns the tracing for the exporter that `find_exporter` gave; None for no exporter.

    Raises UserMistake if the exporter is not installed.
    """
    if not exporter:
        return None
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    if exporter == "console":  # the SDK's own writes to stdout, which is for what a command gives
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return Tracing(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
    found = [each for each in entry_points(group="opentelemetry_traces_exporter") if each.name == exporter]
    if not found:
        raise UserMistake(
            f"{_EXPORTERS}: expected an exporter that is installed, got {exporter!r}; 'otlp' comes with "
            "pip install 'streamtrain[otel]', 'none' is off"
        )
    return Tracing(BatchSpanProcessor(found[0].load()()))


class Tracing:
    """The spans of one process, sent to the span processor that it passes. Any thread may use it."""

    def __init__(self, processor: Any) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource = Resource.create()
        if str(resource.attributes.get("service.name", _ANY_NAME)).startswith(_ANY_NAME):
            resource = resource.merge(Resource({"service.name": "streamtrain"}))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("streamtrain")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def publication(self, job: str, attributes: Attributes) -> Iterator[None]:
        """Records a span of the work within the block; it includes an exception that leaves the block."""
        from opentelemetry.trace import SpanKind

        all_attributes = {"messaging.system": "kafka", "messaging.operation.type": "send", **attributes}
        with self._tracer.start_as_current_span(f"publish {job}", kind=SpanKind.PRODUCER, attributes=all_attributes):
            yield

    def request(
        self, name: str, carrier: Carrier, begun_ns: int, ended_ns: int, attributes: Attributes, error: str = "",
        server: bool = True,
    ) -> None:
        """A request that has been answered, in the trace that `carrier` names, if it is sampled; times since 1970."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        span = self._tracer.start_span(
            name,
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER if server else SpanKind.CONSUMER,
            attributes=attributes,
            start_time=begun_ns,
        )
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(ended_ns)

    def close(self) -> None:
        """Gives what is on its way a moment."""
        closing = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)


def ago_ns(seconds: float) -> tuple[int, int]:
    """Then and now, in nanoseconds since 1970."""
    now_ns = time.time_ns()
    return now_ns - int(seconds * 1e9), now_ns
