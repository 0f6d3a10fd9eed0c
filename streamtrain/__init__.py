"""Training that never stops, on Kafka. What other programs use is loaded when first asked for."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Job": "streamtrain.job",
    "RecordWriter": "streamtrain.clients.writer",
    "LiveModel": "streamtrain.clients.live_model",
    "ModelAnswer": "streamtrain.clients.answers",
    "Published": "streamtrain.clients.published",
    "RunEnded": "streamtrain.clients.published",
    "Snapshot": "streamtrain.clients.snapshot_arrays",
    "EarlyStopped": "streamtrain.fitting.early_stopping.trainer",
    "EarlyStopping": "streamtrain.fitting.early_stopping.configuration",
    "EarlyStoppingParallelTrainer": "streamtrain.fitting.early_stopping.trainer",
    "EarlyStoppingTrainer": "streamtrain.fitting.early_stopping.trainer",
    "Fitted": "streamtrain.fitting.fitted",
    "FittedWindow": "streamtrain.fitting.window",
    "Moment": "streamtrain.fitting.callbacks",
    "ParallelWrapper": "streamtrain.fitting.parallel_wrapper",
    "fit": "streamtrain.fitting.fit",
    "fit_window": "streamtrain.fitting.window",
    "follow_snapshots": "streamtrain.clients.snapshots",
    "history": "streamtrain.clients.history",
    "read_predictions": "streamtrain.clients.predictions",
    "Answer": "streamtrain.topics.predictions",
    "HeadsAnswer": "streamtrain.topics.predictions",
    "RowAnswer": "streamtrain.topics.predictions",
    "RowError": "streamtrain.topics.predictions",
    "CheckFailed": "streamtrain.errors",
    "KafkaBroken": "streamtrain.errors",
    "KafkaDenied": "streamtrain.errors",
    "KafkaSettling": "streamtrain.errors",
    "KafkaUnreachable": "streamtrain.errors",
    "RecordError": "streamtrain.errors",
    "Replaced": "streamtrain.errors",
    "SnapshotError": "streamtrain.errors",
    "StreamtrainError": "streamtrain.errors",
    "TooManyOpenFiles": "streamtrain.errors",
    "UserMistake": "streamtrain.errors",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'streamtrain' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
