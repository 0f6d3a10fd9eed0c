"""What no check can see, each with the reason: a kind of message and the path of a field, or of a forgery by name."""

from __future__ import annotations

from typing import Any

_TRAINING = "what the rows of a batch lost and weighed comes out of training: replay computes and compares it"
_TWIN = "stands in the manifest too; where that is compacted away nothing else tells it"
_USERS = "of a record without dead rows: nothing that a trainer writes has its key"
_ELSEWHERE = "of what was trained in another job, whose topics have it"
_TOLD_ELSEWHERE = [
    ("slot", "[]"), ("metrics", "total", "log_loss"), ("metrics", "total", "rows"), ("metrics", "window", "log_loss"),
]  # fmt: skip
_WORDS = "of a run's own telling: no other message has it"

UNSEEN: dict[tuple[str, ...], str] = {
    ("first manifest", "positions", "partitions", "-the last"): (
        "a partition that a lineage's first snapshot does not list is read from its first offset, as it was"
    ),
    ("manifest imported with beginning", "positions", "partitions", "-the last"): (
        "as of any lineage that begins where the records do"
    ),
    **{
        (f"manifest imported with {positions}", *path): _ELSEWHERE
        for positions in ("beginning", "keep") for path in _TOLD_ELSEWHERE
    },
    ("log", "slots", "[]", "loss_sum"): _TRAINING,
    ("log", "slots", "[]", "weight_sum"): _TRAINING,
    ("log alone", "slots", "[]", "loss_sum"): _TRAINING,
    ("log alone", "slots", "[]", "weight_sum"): _TRAINING,
    ("log alone", "metrics", "total", "log_loss"): _TWIN,
    ("log alone", "metrics", "total", "rows"): _TWIN,
    ("log alone", "metrics", "window", "log_loss"): _TWIN,
    ("log alone", "created_ms"): _TWIN,
    ("log alone", "worker_deaths"): "a count of the run, which no other message has: only that it never falls",
    ("prediction", "value", "prediction"): "what the model says of a request: LiveModel with that snapshot predicts it",
    ("key in records", "k#", "another"): _USERS,
    ("key in records", "k#", "longer"): _USERS,
    ("key in records", "k#", "with zeros"): _USERS,
    ("key in records", "k#", "none"): _USERS,
    ("key in records", "k#", "of b'bad'"): _USERS,
    ("run", "host"): _WORDS,
    ("run", "process"): _WORDS,
    ("run", "started_ms"): _WORDS,
    ("end", "reason"): _WORDS,
    ("end", "ended_ms"): _WORDS,
}


def named(kind: str, path: tuple[Any, ...]) -> tuple[str, ...]:
    """As it stands in the list: indices of lists are not told apart."""
    return (kind, *(step if isinstance(step, str) else "[]" for step in path))
