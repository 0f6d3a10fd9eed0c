"""The settings of a server: plain values, so that a process can be spawned with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamtrain.job import Job
from streamtrain.kafka.snapshot_reader import Version

MOST_BYTES = 8 << 20  # of a body; a row of 30 numbers is 500
MOST_REQUESTS = 512  # answered at once in one process: each is in memory
MAX_BODIES = 8  # bodies of the largest size that may be in memory at once
ANSWER_BYTES = 4  # an answer may be so many times as large as a body
BODY_S = 10.0  # a body may take so long to come
HEAD_S = 10.0  # and so long what stands before it, on a new connection as well
HEAD_BYTES = 64 << 10
STALLED_S = 30.0  # an answer that nobody takes is let go
KEEP_ALIVE_S = 75.0  # a connection without a request; longer than clients keep theirs, so that they end them
DRAIN_S = 30.0  # at the end, for what is being answered


@dataclass(frozen=True)
class Limits:
    """Above `most_bytes` a body is refused with 413, above `most_requests` at once, in one process, a request with
    429."""

    most_bytes: int = MOST_BYTES
    most_requests: int = MOST_REQUESTS

    @property
    def total_bytes(self) -> int:
        """Returns the limit for all bodies that are in memory at once, in bytes."""
        return MAX_BODIES * self.most_bytes

    @property
    def answer_bytes(self) -> int:
        return ANSWER_BYTES * self.most_bytes


@dataclass(frozen=True)
class ServedJob:
    """A job to follow."""

    name: str
    bootstrap: str
    kafka: dict[str, str] = field(repr=False)  # may hold secrets
    module: Mapping[str, Any] | None = None  # the network of the job, where it is not of layers
    version: Version | None = None  # where it stays; None: follow the newest

    @classmethod
    def of(cls, job: Job, version: Version | None = None) -> ServedJob:
        network = None if job.network is None else job.network.to_dict()
        return cls(job.name, job.kafka.bootstrap, job.kafka_consumer(), network, version)


@dataclass(frozen=True)
class Config:
    """One server's, of any number of processes."""

    jobs: tuple[ServedJob, ...]
    host: str
    port: int
    limits: Limits = Limits()
    token: bytes | None = field(default=None, repr=False)
    log_format: str = "plain"
    access_log: bool = True
    traces: str = ""  # the exporter of spans: telemetry/tracing.py

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(job.name for job in self.jobs)
