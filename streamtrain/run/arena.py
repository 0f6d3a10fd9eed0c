"""A job's arena, and what its workers are told: the same whether records come from Kafka or from memory."""

from __future__ import annotations

from typing import Any

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.job import Job
from streamtrain.log import get_logger
from streamtrain.run.cores import cores_of_workers, crowded

log = get_logger("streamtrain.run.cores")

_RANGES_PER_SLOT = 512  # a slot with more changes of partition is published before it is full


def slot_layout(job: Job) -> _native.SlotLayout:
    """Returns the layout of a slot that holds all rows of an update."""
    return _native.SlotLayout.make(job.train.update_rows, _RANGES_PER_SLOT, job.schema.block_specs())


def slot_count(job: Job, ingest_threads: int = 1) -> int:
    """Each thread but one has a slot of its own beside the ring's."""
    return job.rounds.prefetch_buffer + ingest_threads - 1


def make_arena(job: Job, model: Model, ingest_threads: int = 1) -> _native.Arena:
    """Slots, rounds and state for one run of the job, in shared memory."""
    rounds = job.rounds
    return _native.Arena.create(
        workers=rounds.workers,
        averaging_frequency=rounds.averaging_frequency,
        slot_count=slot_count(job, ingest_threads),
        slot_layout=slot_layout(job),
        state_layout=model.layout,
    )


def make_fold_arena(job: Job, model: Model) -> _native.Arena:
    """Means and windows of the job, in shared memory, for whoever folds what others have trained."""
    return _native.Arena.create(
        workers=1,
        averaging_frequency=1,
        slot_count=2,
        slot_layout=_native.SlotLayout.make(1, 1, job.schema.block_specs()),
        state_layout=model.layout,
    )


def worker_config(job: Job) -> dict[str, Any]:
    """Returns the config of a worker process, without its arena, its number and what the command line adds. Raises
    UserMistake for cores that are not there."""
    if warning := crowded(job):
        log.warning(warning)
    return {
        "model": job.model_spec(),
        "backend": job.train.backend,
        "threads": job.train.threads_per_worker,
        "cores": cores_of_workers(job),
        "score_means": job.train.report_score_after_averaging,
        "schedule": job.schedule,
        "module": None if job.network is None else job.network.to_dict(),
    }
